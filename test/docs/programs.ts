// The JavaScript programs in a page.

/** The content of each block of `js`, in order. */
export function programs(page: string): string[] {
  return [...page.matchAll(/^```js\n([\s\S]*?)^```$/gm)].map(([, program]) => program ?? '');
}
