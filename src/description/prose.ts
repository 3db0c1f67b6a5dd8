// Prose of the description beyond the declarations: sections of paragraphs, lists and tables, rendered as Markdown and
// as HTML, and the shape of an endpoint's note. Text between backticks is code; there is no other mark-up.

interface Table {
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

/** A problem with a request, or with one of its fields. */
export interface Problem {
  readonly field?: string;
  readonly message: string;
}

/** The texts and examples of an endpoint beyond its declaration. */
export interface Note {
  /** Paragraphs. */
  readonly description: readonly string[];
  /** Path parameters that mean something else here than usual. */
  readonly params?: Readonly<Record<string, { readonly description: string; readonly example: string }>>;
  /** A working request body, if the combined examples of the fields do not make one. */
  readonly body?: unknown;
  /** A response to show, if the combined examples of the fields are misleading. */
  readonly answer?: unknown;
  /** The endpoint's own errors, by status. */
  readonly problems?: Readonly<Record<number, readonly Problem[]>>;
  /** Tenant limits that it can reach, such as `25 users`; answered with 403. */
  readonly limits?: readonly string[];
  /** Complete error bodies, for errors that are not just messages. */
  readonly errorExamples?: Readonly<Record<number, unknown>>;
  /** Works while the appliance is sealed. */
  readonly whileSealed?: true;
  /** Belongs to no tenant: every host answers it. */
  readonly tenantless?: true;
}
