// The guides as plain text: Markdown without its marks, in lines of a given width, and a search through its sections.
import { searchSections, sectionsOf } from '../model/guide-sections.ts';
import type { Guide } from '../model/program-files.ts';
import { width } from './text.ts';

/** The topic that a word names: a guide's name, with or without `guide-` in front or `.md` behind. */
export function guideNamed(guides: readonly Guide[], word: string): Guide | undefined {
  const name = word.toLowerCase().replace(/\.md$/, '');
  return guides.find((guide) => guide.name === name) ?? guides.find((guide) => guide.name === `guide-${name}`);
}

/** Finds the name under which `kms help` lists a guide: a command's name stays the command's. */
export function topicsOf(guides: readonly Guide[], commands: readonly string[]): (guide: Guide) => string {
  const taken = new Set([...commands, ...guides.map(({ name }) => name)]);
  return ({ name }) => {
    const short = name.replace(/^guide-/, '');
    if (short !== name) return taken.has(short) ? name : short;
    return commands.includes(name) ? `${name}.md` : name;
  };
}

/** Lines of at most `room` cells, code and long words aside. */
export function plainText(markdown: string, room: number): string[] {
  const lines: string[] = [];
  let isCode = false;
  let paragraph: string[] = [];
  let indent = '';
  const end = (): void => {
    if (paragraph.length > 0) lines.push(...filled(paragraph.join(' '), room, indent));
    paragraph = [];
    indent = '';
  };
  for (const line of markdown.replace(/<!--[\s\S]*?-->\n?/g, '').split('\n')) {
    if (line.startsWith('```')) {
      end();
      isCode = !isCode;
    } else if (isCode) lines.push(`    ${line}`.trimEnd());
    else if (line.trim() === '') {
      end();
      if (lines.at(-1) !== '') lines.push('');
    } else if (/^#+ /.test(line)) {
      end();
      lines.push(unmarked(line.replace(/^#+ /, '')).toUpperCase());
    } else if (line.startsWith('|')) {
      end();
      lines.push(...row(line, room));
    } else {
      const item = /^( *)(?:[-*]|\d+\.) /.exec(line);
      if (item) end();
      if (item) indent = ' '.repeat(item[0].length);
      paragraph.push(line.trim());
    }
  }
  end();
  return lines;
}

/** A table's row: its first cell, and the others behind it. */
function row(line: string, room: number): string[] {
  const cells = line
    .replace(/^\|\s*|\s*\|\s*$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));
  if (cells.every((cell) => /^:?-*:?$/.test(cell))) return [];
  const [first = '', ...others] = cells;
  const rest = others.filter((cell) => cell !== '').join('; ');
  return filled(rest === '' ? first : first === '' ? rest : `${first}: ${rest}`, room, '    ');
}

/** Text without links, emphasis and images. */
function unmarked(text: string): string {
  return text
    .replace(/!\[[^\]]*\]\([^)]*\)/g, '')
    .replace(/\[([^\]]+)\]\([^)]*\)/g, '$1')
    .replace(/\*\*/g, '');
}

/** Lines of words; all but the first begin with `indent`. */
function filled(text: string, room: number, indent: string): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of unmarked(text).split(/\s+/)) {
    if (line !== '' && width(line) + 1 + width(word) > room) {
      lines.push(line);
      line = indent + word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return line.trim() === '' ? lines : [...lines, line];
}

interface Found {
  readonly guide: Guide;
  readonly heading: string;
  /** A line with one of the words. */
  readonly line: string;
}

/** Sections that have all the words, those with all in the heading first. */
export function searchGuides(guides: readonly Guide[], words: readonly string[]): readonly Found[] {
  const wanted = words.map((word) => word.toLowerCase());
  const has = (line: string) => (word: string) => line.toLowerCase().includes(word);
  return searchSections(guides.flatMap(sectionsOf), words).map(({ guide, text }) => {
    const [heading = '', ...lines] = plainText(text, 72);
    const best = lines.find((line) => wanted.every(has(line))) ?? lines.find((line) => wanted.some(has(line)));
    return { guide, heading, line: (best ?? '').trim() };
  });
}
