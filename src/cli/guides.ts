// The guides as plain text: Markdown without its marks, in lines of a given width, and a search through its sections.
import { searchSections, sectionsOf } from '../model/guide-sections.ts';
import { type Block, blocksOf } from '../model/markdown.ts';
import type { Guide } from '../model/program-files.ts';
import { width } from './text.ts';

/** The guide that a word names: its name, with or without `guide-` in front or `.md` behind. */
export function guideNamed(guides: readonly Guide[], word: string): Guide | undefined {
  const name = word.toLowerCase().replace(/\.md$/, '');
  const names = [name, `guide-${name}`, name.replace(/^guide-/, '')];
  return names.flatMap((each) => guides.find((guide) => guide.name === each) ?? [])[0];
}

/** Finds the name under which `kms help` lists a guide: a command's name stays the command's. */
export function topicsOf(guides: readonly Guide[], commands: readonly string[]): (guide: Guide) => string {
  const taken = new Set([...commands, ...guides.map(({ name }) => name)]);
  return ({ name }) => {
    const short = name.replace(/^guide-/, '');
    if (short !== name) return taken.has(short) ? name : short;
    return commands.includes(name) ? `guide-${name}` : name;
  };
}

/** How a link's target is named for people: a command or an address; undefined if its text alone is shown. */
type TargetName = (target: string) => string | undefined;

/** Names guides by the command that shows them, and pages elsewhere by their address. */
export function targetsOf(guides: readonly Guide[], topicOf: (guide: Guide) => string): TargetName {
  return (target) => {
    if (/^https?:/.test(target)) return target;
    const [file = ''] = target.split('#');
    const guide = guides.find(({ name }) => `${name}.md` === file);
    return guide && `\`kms help ${topicOf(guide)}\``;
  };
}

/** Lines of at most `room` cells, code and long words aside. */
export function plainText(markdown: string, room: number, targetName: TargetName = () => undefined): string[] {
  return linesOf(blocksOf(markdown.split('\n')), { room, text: (marked) => unmarked(marked, targetName) });
}

interface Form {
  readonly room: number;
  /** Text without marks. */
  text(marked: string): string;
}

const codeIndent = '    ';

/** Blocks with an empty line between them. */
function linesOf(blocks: readonly Block[], form: Form): string[] {
  return blocks.flatMap((block, n) => [...(n === 0 ? [] : ['']), ...blockLines(block, form)]);
}

function blockLines(block: Block, form: Form): string[] {
  const { room, text } = form;
  switch (block.kind) {
    case 'heading':
      return filled(upperCase(text(block.text)), room);
    case 'paragraph':
      return filled(text(block.text), room);
    case 'code':
      return block.lines.map((line) => `${codeIndent}${line}`.trimEnd());
    case 'list':
      return listLines(block, form);
    case 'table':
      return tableLines(
        block.head.map(text),
        block.rows.map((row) => row.map(text)),
        room,
      );
  }
}

/** Capitals, except in code, such as names of files. */
function upperCase(text: string): string {
  return text.replace(/`[^`]+`|[^`]+/g, (part) => (part.startsWith('`') ? part : part.toUpperCase()));
}

function listLines({ start, items }: Extract<Block, { kind: 'list' }>, form: Form): string[] {
  return items.flatMap((item, n) => {
    const mark = start === undefined ? '- ' : `${start + n}. `;
    const inner: Form = { ...form, room: form.room - mark.length };
    const lines = typeof item === 'string' ? filled(inner.text(item), inner.room) : linesOf(item, inner);
    return lines.map((line, at) => `${at === 0 ? mark : ' '.repeat(mark.length)}${line}`.trimEnd());
  });
}

const columnGap = '  ';
/** A last column that is narrower than this is hard to read. */
const leastColumn = 28;

/**
 * Columns side by side, the last one in several lines where need be. Where there is no room for that, each row is a
 * paragraph: its first cell, and below it the others, each behind the title of its column.
 */
function tableLines(head: readonly string[], rows: readonly (readonly string[])[], room: number): string[] {
  const isTitled = head.some((title) => title !== '');
  const shown = isTitled ? [head, ...rows] : rows;
  const widths = head.map((_, n) => Math.max(...shown.map((row) => width(row[n] ?? ''))));
  const before = widths.slice(0, -1).reduce((sum, each) => sum + each + columnGap.length, 0);
  const natural = widths.at(-1) ?? 0;
  const last = Math.min(natural, room - before);
  const longest = Math.max(...shown.map((row) => longestWord(row[head.length - 1] ?? '')));
  if (last < Math.max(longest, Math.min(natural, leastColumn))) {
    return rows.flatMap((row, n) => rowLines(head, row, room, n));
  }
  const all = [...widths.slice(0, -1), last];
  const rule = all.map((each) => '-'.repeat(each));
  const body = rows.map((row) => head.map((_, n) => row[n] || '-'));
  return (isTitled ? [head, rule, ...body] : body).flatMap((row) => sideBySide(row, all));
}

function sideBySide(row: readonly string[], widths: readonly number[]): string[] {
  const cells = widths.map((room, n) => filled(row[n] ?? '', room));
  const height = Math.max(...cells.map((lines) => lines.length));
  return Array.from({ length: height }, (_, at) => {
    const line = widths.map((room, n) => padded(cells[n]?.[at] ?? '', room));
    return line.join(columnGap).trimEnd();
  });
}

function longestWord(text: string): number {
  return Math.max(...text.split(/\s+/).map(width));
}

function padded(text: string, room: number): string {
  return text + ' '.repeat(Math.max(0, room - width(text)));
}

function rowLines(head: readonly string[], row: readonly string[], room: number, at: number): string[] {
  const [first, ...others] = head.map((_, n) => row[n] || '-');
  const cells = others.flatMap((cell, n) => {
    const title = head[n + 1];
    return filled(title ? `${title}: ${cell}` : cell, room - 4).map((line, m) => `${m === 0 ? '  ' : '    '}${line}`);
  });
  return [...(at === 0 ? [] : ['']), ...filled(first ?? '', room), ...cells];
}

/** Text without images and emphasis; links are followed by the name of what they lead to. Code is left as it is. */
function unmarked(text: string, targetName: TargetName): string {
  const kept: string[] = [];
  const keep = (code: string): string => `\0${kept.push(code) - 1}\0`;
  return (
    text
      .replace(/`[^`]+`/g, keep)
      .replace(/!\[[^\]]*\]\([^)]*\)/g, '')
      // Nothing here shows such a page.
      .replace(/\s\(\[([^\]]+)\]\(([^)\s]+)\)\)/g, (whole, shown: string, target: string) =>
        targetName(target) === undefined && isNameOf(shown, target) ? '' : whole,
      )
      .replace(/\[([^\]]+)\]\(([^)\s]+)\)/g, (_, shown: string, target: string) => {
        const name = targetName(target);
        if (name === undefined || name === shown) return shown;
        return isNameOf(shown, target) ? name : `${shown} (${name})`;
      })
      .replace(/\*\*([^*]+)\*\*/g, '$1')
      .replace(/(?<![\w*])\*([^*\s](?:[^*]*[^*\s])?)\*(?![\w*])/g, '$1')
      .replace(/\0(\d+)\0/g, (_, number: string) => kept[Number(number)] ?? '')
  );
}

/** Whether a link shows nothing but its target. */
function isNameOf(shown: string, target: string): boolean {
  const [file = ''] = target.split('#');
  return shown === file || target === `https://${shown}`;
}

/** Lines of words. */
function filled(text: string, room: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line !== '' && width(line) + 1 + width(word) > room) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return line === '' ? lines : [...lines, line];
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
    const [first = '', ...others] = text.split('\n');
    const [heading = ''] = plainText(first, Number.POSITIVE_INFINITY);
    const lines = plainText(others.join('\n'), 72);
    const best = lines.find((line) => wanted.every(has(line))) ?? lines.find((line) => wanted.some(has(line)));
    return { guide, heading, line: (best ?? '').trim() };
  });
}
