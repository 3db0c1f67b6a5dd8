// The JavaScript programs in a page.

/** The content of each `js` block, in order. */
export function programs(page: string): string[] {
  return [...page.matchAll(/^```js\n([\s\S]*?)^```$/gm)].map(([, program]) => program ?? '');
}
