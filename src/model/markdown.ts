// Markdown as blocks, as far as the guides use it: headings, paragraphs, lists, tables and code. Comments are left out.

export type Block =
  | { readonly kind: 'heading'; readonly level: number; readonly text: string }
  | { readonly kind: 'paragraph'; readonly text: string }
  | { readonly kind: 'code'; readonly lines: readonly string[] }
  | { readonly kind: 'table'; readonly head: readonly string[]; readonly rows: readonly (readonly string[])[] }
  /** `start` is the first number; undefined for a list without numbers. */
  | { readonly kind: 'list'; readonly start: number | undefined; readonly items: readonly ListItem[] };

/** Text with line feeds, or blocks. */
export type ListItem = string | readonly Block[];

/** No number of four digits: a sentence may end with a mode such as 0700 at the beginning of a line. */
const item = /^( *)([-*]|\d{1,3}\.) +/;
const indented = /^(?: {4}|\t)/;

export function blocksOf(lines: readonly string[]): readonly Block[] {
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; ) {
    const end = endOf(lines, at);
    const block = blockOf(lines[at] ?? '', lines.slice(at, end));
    if (block) blocks.push(block);
    at = end;
  }
  return blocks;
}

/** The line after the block that begins here. */
function endOf(lines: readonly string[], from: number): number {
  const line = lines[from] ?? '';
  const until = (isEnd: (each: string) => boolean): number => {
    const found = lines.findIndex((each, index) => index > from && isEnd(each));
    return found < 0 ? lines.length : found;
  };
  if (line.startsWith('```')) return Math.min(until((each) => each.startsWith('```')) + 1, lines.length);
  if (line.startsWith('<!--')) return line.includes('-->') ? from + 1 : until((each) => each.includes('-->')) + 1;
  if (line.trim() === '' || /^#+ /.test(line)) return from + 1;
  if (line.startsWith('|')) return until((each) => !each.startsWith('|'));
  if (indented.test(line)) return lastCode(lines, from) + 1;
  if (item.test(line)) return endOfList(lines, from);
  return until((each) => each.trim() === '' || /^(?:```|#+ |\||<!--)/.test(each) || item.test(each));
}

function lastCode(lines: readonly string[], from: number): number {
  let last = from;
  for (let at = from; at < lines.length; at++) {
    const line = lines[at] ?? '';
    if (indented.test(line)) last = at;
    else if (line.trim() !== '') break;
  }
  return last;
}

/** A list ends with a line that is neither an item nor indented, behind an empty line or of another kind. */
function endOfList(lines: readonly string[], from: number): number {
  for (let at = from + 1; at < lines.length; at++) {
    const line = lines[at] ?? '';
    const isFree = line !== '' && !line.startsWith(' ') && !item.test(line);
    if (isFree && (lines[at - 1] === '' || /^(?:```|#+ |\||<!--)/.test(line))) return at;
  }
  return lines.length;
}

function blockOf(first: string, lines: readonly string[]): Block | undefined {
  if (first.trim() === '' || first.startsWith('<!--')) return undefined;
  if (first.startsWith('```')) {
    return { kind: 'code', lines: lines.slice(1, lines.at(-1)?.startsWith('```') ? -1 : undefined) };
  }
  const [, marks = '', heading = ''] = /^(#+) (.+)$/.exec(first) ?? [];
  if (marks !== '') return { kind: 'heading', level: Math.min(marks.length, 6), text: heading };
  if (first.startsWith('|')) return tableOf(lines);
  if (indented.test(first)) return { kind: 'code', lines: lines.map((line) => line.replace(indented, '')) };
  if (item.test(first)) return listOf(lines);
  return { kind: 'paragraph', text: trimmed(lines) };
}

function tableOf(lines: readonly string[]): Block {
  const rows = lines.map((line) =>
    line
      .replace(/^\|\s*|\s*\|\s*$/g, '')
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll('\\|', '|')),
  );
  const [head = [], , ...body] = rows;
  return { kind: 'table', head, rows: body };
}

function listOf(lines: readonly string[]): Block {
  const [, , mark = '-'] = item.exec(lines[0] ?? '') ?? [];
  const items: string[][] = [];
  for (const line of lines) {
    const [marked, before = ''] = item.exec(line) ?? [];
    if (marked !== undefined && before === '') items.push([line.slice(marked.length)]);
    else items.at(-1)?.push(line.replace(/^ {1,3}/, ''));
  }
  const start = Number.parseInt(mark, 10);
  return { kind: 'list', start: Number.isNaN(start) ? undefined : start, items: items.map(listItem) };
}

/** A short item is text; one with blocks in it has them. */
function listItem(lines: readonly string[]): ListItem {
  const isText = lines.every((line) => !/^(?:```|\|)/.test(line.trim()) && !item.test(line));
  if (!isText || lines.some((line, at) => line === '' && lines.slice(at).some((each) => each !== ''))) {
    return blocksOf(lines);
  }
  return trimmed(lines).trim();
}

function trimmed(lines: readonly string[]): string {
  return lines.map((line) => line.trim()).join('\n');
}
