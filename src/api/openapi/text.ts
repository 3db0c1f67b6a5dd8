// Prose as data: paragraphs, lists and tables, from which the Markdown of the description and the HTML of the reference are made
// alike. Within a text, what stands between backticks is code; there is no other mark-up.

export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** A paragraph, the items of a list, or a table. */
export type Block = string | readonly string[] | Table;

export interface Section {
  /** The anchor. */
  readonly id: string;
  readonly title: string;
  readonly blocks: readonly Block[];
}

export function isList(block: Block): block is readonly string[] {
  return Array.isArray(block);
}

export function toMarkdown(sections: readonly Section[]): string {
  return sections.map(({ title, blocks }) => [`## ${title}`, ...blocks.map(blockToMarkdown)].join('\n\n')).join('\n\n');
}

function blockToMarkdown(block: Block): string {
  if (typeof block === 'string') return block;
  if (isList(block)) return block.map((item) => `- ${item}`).join('\n');
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(block.head), line(block.head.map(() => '---')), ...block.rows.map(line)].join('\n');
}
