// Says something to those who hear the page, without moving them: by the live region that the page came with.

export function announce(text: string): void {
  const region = document.querySelector('body > [role=status]');
  if (region) region.textContent = text;
}
