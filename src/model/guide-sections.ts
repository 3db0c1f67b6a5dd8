// Sections of the guides: what stands under each heading, with the heading's anchor, and a search through them.
import type { Guide } from './program-files.ts';

export interface GuideSection {
  readonly guide: Guide;
  /** Markdown, without the number signs. */
  readonly heading: string;
  readonly anchor: string;
  /** Markdown, with the heading. */
  readonly text: string;
}

/** The name of a heading as Markdown sites derive it: lower case, dashes for spaces, nothing else. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

/** A line of a fenced block may begin with a number sign; it is no heading. */
export function sectionsOf(guide: Guide): readonly GuideSection[] {
  const sections: { heading: string; lines: string[] }[] = [];
  let isCode = false;
  for (const line of guide.text.split('\n')) {
    if (line.startsWith('```')) isCode = !isCode;
    const heading = isCode ? undefined : /^#+ (.+)$/.exec(line)?.[1];
    if (heading !== undefined) sections.push({ heading, lines: [] });
    sections.at(-1)?.lines.push(line);
  }
  return sections.map(({ heading, lines }) => ({ guide, heading, anchor: anchorOf(heading), text: lines.join('\n') }));
}

/** Sections that have all the words, those with all in the heading first. */
export function searchSections(sections: readonly GuideSection[], words: readonly string[]): readonly GuideSection[] {
  const wanted = words.map((word) => word.toLowerCase());
  const hasAll = (text: string): boolean => wanted.every((word) => text.toLowerCase().includes(word));
  const found = sections.filter(({ text }) => hasAll(text));
  return [...found.filter(({ heading }) => hasAll(heading)), ...found.filter(({ heading }) => !hasAll(heading))];
}
