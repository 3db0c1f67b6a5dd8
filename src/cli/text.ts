// Text for people: escaped for terminals if it comes from elsewhere, and cut to width.

/**
 * Control characters, line and paragraph separators, byte order mark, characters that change the direction of text or
 * have no width, and tag characters.
 */
const unsafe =
  /[\p{Cc}\p{Cs}\u2028\u2029\ufeff\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** `text` on one line, with every character that would be invisible or misleading written as an escape. */
export function visible(text: string): string {
  return text.replace(unsafe, (character) => {
    const code = character.codePointAt(0) ?? 0;
    const digits = code.toString(16);
    if (code > 0xffff) return `\\u{${digits}}`;
    return code < 0x100 ? `\\x${digits.padStart(2, '0')}` : `\\u${digits.padStart(4, '0')}`;
  });
}

let segmenter: Intl.Segmenter | undefined;
/** Created on first use: it takes 15 ms, too much for a server's start. */
function graphemes(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return segmenter.segment(text);
}

/**
 * Takes no cell: marks, Hangul vowels and finals that join a syllable, and other characters drawn with their neighbour.
 */
const joined = /^[\p{M}\p{Cf}\u1160-\u11ff\ud7b0-\ud7ff]$/u;
const emoji = /^(?:\p{Emoji_Presentation}|\p{Regional_Indicator}{2}|\p{Emoji}\ufe0f)/u;
/** Two cells each: East Asian scripts and full-width forms (Unicode's East_Asian_Width W and F, without emoji). */
const wide =
  /^[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{1b2ff}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}]$/u;

/** Terminal cells that the text takes, approximately. */
export function width(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  let cells = 0;
  for (const { segment } of graphemes(text)) cells += cellsOf(segment);
  return cells;
}

function cellsOf(grapheme: string): number {
  if (emoji.test(grapheme)) return 2;
  let cells = 0;
  for (const character of grapheme) cells += joined.test(character) ? 0 : wide.test(character) ? 2 : 1;
  return cells;
}

/** `text` in at most `cells` cells, its end replaced by an ellipsis if it is too long. */
export function shorten(text: string, cells: number): string {
  if (width(text) <= cells) return text;
  let short = '';
  let room = cells - 1;
  for (const { segment } of graphemes(text)) {
    room -= cellsOf(segment);
    if (room < 0) break;
    short += segment;
  }
  return `${short}…`;
}
