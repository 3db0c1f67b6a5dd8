// The one-time token of the link by which somebody came. It is taken out of the address at once, so that it stays in no history, bookmark
// or screenshot, and is kept nowhere but in memory: loading the page again needs the link again.

export function takeToken(): string | undefined {
  const { search, pathname } = window.location;
  const token = new URLSearchParams(search).get('token') ?? undefined;
  if (search !== '') window.history.replaceState(null, '', pathname);
  return token;
}
