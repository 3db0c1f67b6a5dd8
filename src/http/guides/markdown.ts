// Markdown as HTML, as far as the guides use it: headings, paragraphs, lists, tables, code, links and emphasis.
// Everything else is text, and all text is escaped.
import { anchorOf } from '../../model/guide-sections.ts';
import { escaped } from '../escaping.ts';

/** Address of a link's target; undefined if it leads nowhere here, and only its text is shown. */
type LinkTo = (target: string) => string | undefined;

export function markdownHtml(markdown: string, linkTo: LinkTo): string {
  return blocks(markdown.split('\n'), linkTo);
}

/** One line without marks. */
export function plainLine(line: string): string {
  const isRow = line.startsWith('|');
  const cells = line.replace(/^\|\s*|\s*\|\s*$/g, '').replace(/\s*(?<!\\)\|\s*/g, '; ');
  return (isRow ? cells : line)
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/\*\*|`|^[#>\s]+|^\s*(?:[-*]|\d+\.) /g, '')
    .replace(/(?<![\w*])\*([^*\s][^*]*)\*/g, '$1')
    .trim();
}

const item = /^( *)([-*]|\d+\.) +/;
const indented = /^(?: {4}|\t)/;

function blocks(lines: readonly string[], linkTo: LinkTo): string {
  const made: string[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? '';
    const end = endOf(lines, at);
    made.push(block(line, lines.slice(at, end), linkTo));
    at = end;
  }
  return made.filter((each) => each !== '').join('\n');
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

function block(first: string, lines: readonly string[], linkTo: LinkTo): string {
  if (first.trim() === '' || first.startsWith('<!--')) return '';
  if (first.startsWith('```')) return code(lines.slice(1, lines.at(-1)?.startsWith('```') ? -1 : undefined));
  const [, marks = '', heading = ''] = /^(#+) (.+)$/.exec(first) ?? [];
  if (marks !== '') {
    const level = Math.min(marks.length, 6);
    return `<h${level} id="${escaped(anchorOf(heading))}">${inline(heading, linkTo)}</h${level}>`;
  }
  if (first.startsWith('|')) return table(lines, linkTo);
  if (indented.test(first)) return code(lines.map((line) => line.replace(indented, '')));
  if (item.test(first)) return list(lines, linkTo);
  return `<p>${inline(lines.map((line) => line.trim()).join('\n'), linkTo)}</p>`;
}

function code(lines: readonly string[]): string {
  return `<pre><code>${escaped(lines.join('\n'))}\n</code></pre>`;
}

function table(lines: readonly string[], linkTo: LinkTo): string {
  const rows = lines.map((line) =>
    line
      .replace(/^\|\s*|\s*\|\s*$/g, '')
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll('\\|', '|')),
  );
  const [head = [], , ...body] = rows;
  const cell = (text: string, tag: string): string => `<${tag}>${inline(text, linkTo)}</${tag.slice(0, 2)}>`;
  const cells = (row: readonly string[]): string => row.map((text) => cell(text, 'td')).join('');
  // An empty cell heads nothing.
  const heads = head.map((text) => cell(text, text === '' ? 'td' : 'th scope="col"')).join('');
  const titled = head.some((cell) => cell !== '') ? `<thead><tr>${heads}</tr></thead>\n` : '';
  return `<table>\n${titled}<tbody>${body.map((row) => `<tr>${cells(row)}</tr>`).join('\n')}</tbody>\n</table>`;
}

function list(lines: readonly string[], linkTo: LinkTo): string {
  const [, , mark = '-'] = item.exec(lines[0] ?? '') ?? [];
  const items: string[][] = [];
  for (const line of lines) {
    const [marked, before = ''] = item.exec(line) ?? [];
    if (marked !== undefined && before === '') items.push([line.slice(marked.length)]);
    else items.at(-1)?.push(line.replace(/^ {1,3}/, ''));
  }
  const start = Number.parseInt(mark, 10);
  const tag = Number.isNaN(start) ? 'ul' : 'ol';
  const from = tag === 'ol' && start !== 1 ? ` start="${start}"` : '';
  const made = items.map((each) => `<li>${listItem(each, linkTo)}</li>`);
  return `<${tag}${from}>\n${made.join('\n')}\n</${tag}>`;
}

/** A short item is a line of text; one with blocks in it has them. */
function listItem(lines: readonly string[], linkTo: LinkTo): string {
  const isText = lines.every((line) => !/^(?:```|\|)/.test(line.trim()) && !item.test(line));
  if (!isText || lines.some((line, at) => line === '' && lines.slice(at).some((each) => each !== ''))) {
    return blocks(lines, linkTo);
  }
  return inline(
    lines
      .map((line) => line.trim())
      .join('\n')
      .trim(),
    linkTo,
  );
}

/** Code and links first, each kept aside under a number, since nothing in code is a mark; then emphasis. */
function inline(text: string, linkTo: LinkTo): string {
  const kept: string[] = [];
  const keep = (html: string): string => `\0${kept.push(html) - 1}\0`;
  const linked = text
    .replace(/`([^`]+)`/g, (_, inside: string) => keep(`<code>${escaped(inside)}</code>`))
    .replace(/(!?)\[([^\]]*)\]\(([^)\s]+)\)/g, (_, image: string, shown: string, target: string) => {
      const to = image === '' ? linkTo(target) : undefined;
      return to === undefined ? shown : `${keep(`<a href="${escaped(to)}">`)}${shown}${keep('</a>')}`;
    });
  return escaped(linked)
    .replace(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')
    .replace(/(?<![\w*])\*([^*\s](?:[^*]*[^*\s])?)\*(?![\w*])/g, '<em>$1</em>')
    .replace(/\0(\d+)\0/g, (_, number: string) => kept[Number(number)] ?? '');
}
