// Markdown as HTML, as far as the guides use it: headings, paragraphs, lists, tables, code, links and emphasis.
// Everything else is text, and all text is escaped.
import { anchorOf } from '../../model/guide-sections.ts';
import { type Block, blocksOf, type ListItem } from '../../model/markdown.ts';
import { escaped } from '../escaping.ts';

/** Address of a link's target; undefined if it leads nowhere here, and only its text is shown. */
type LinkTo = (target: string) => string | undefined;

export function markdownHtml(markdown: string, linkTo: LinkTo): string {
  return html(blocksOf(markdown.split('\n')), linkTo);
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

function html(blocks: readonly Block[], linkTo: LinkTo): string {
  return blocks.map((block) => blockHtml(block, linkTo)).join('\n');
}

function blockHtml(block: Block, linkTo: LinkTo): string {
  switch (block.kind) {
    case 'heading': {
      const { level, text } = block;
      return `<h${level} id="${escaped(anchorOf(text))}">${inline(text, linkTo)}</h${level}>`;
    }
    case 'code':
      return `<pre><code>${escaped(block.lines.join('\n'))}\n</code></pre>`;
    case 'table':
      return table(block, linkTo);
    case 'list':
      return list(block, linkTo);
    case 'paragraph':
      return `<p>${inline(block.text, linkTo)}</p>`;
  }
}

function table({ head, rows }: Extract<Block, { kind: 'table' }>, linkTo: LinkTo): string {
  const cell = (text: string, tag: string): string => `<${tag}>${inline(text, linkTo)}</${tag.slice(0, 2)}>`;
  const cells = (row: readonly string[]): string => row.map((text) => cell(text, 'td')).join('');
  // An empty cell heads nothing.
  const heads = head.map((text) => cell(text, text === '' ? 'td' : 'th scope="col"')).join('');
  const titled = head.some((cell) => cell !== '') ? `<thead><tr>${heads}</tr></thead>\n` : '';
  return `<table>\n${titled}<tbody>${rows.map((row) => `<tr>${cells(row)}</tr>`).join('\n')}</tbody>\n</table>`;
}

function list({ start, items }: Extract<Block, { kind: 'list' }>, linkTo: LinkTo): string {
  const tag = start === undefined ? 'ul' : 'ol';
  const from = start === undefined || start === 1 ? '' : ` start="${start}"`;
  const content = (each: ListItem): string => (typeof each === 'string' ? inline(each, linkTo) : html(each, linkTo));
  return `<${tag}${from}>\n${items.map((each) => `<li>${content(each)}</li>`).join('\n')}\n</${tag}>`;
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
