// Text from elsewhere (a server, a file) made safe to show on a terminal: nothing in it moves the cursor, hides or reorders.

/** Controls, line and paragraph separators, byte order mark, and what changes the direction of text or has no width. */
const unsafe = /[\p{Cc}\p{Cs}\u2028\u2029\ufeff\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufff9-\ufffb]/gu;

/** `text` with every character that would not be seen as itself written as an escape, on one line. */
export function visible(text: string): string {
  return text.replace(unsafe, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

const marks = /\p{M}/gu;
const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/gu;

/** How many cells of a terminal the text takes, near enough. */
export function width(text: string): number {
  const characters = text.replace(marks, '');
  return [...characters].length + (characters.match(wide)?.length ?? 0);
}

/** `text` in at most `cells` cells, its end replaced by an ellipsis where it is too long. */
export function shorten(text: string, cells: number): string {
  if (width(text) <= cells) return text;
  let short = '';
  for (const character of text) {
    if (width(short + character) > cells - 1) break;
    short += character;
  }
  return `${short}…`;
}
