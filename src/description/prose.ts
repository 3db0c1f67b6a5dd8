// Prose is what the description says beyond the declarations: sections of paragraphs, lists and tables, made into
// Markdown and HTML alike, and the notes on each endpoint. Within a text, what stands between backticks is code; there
// is no other mark-up.

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

/** What is wrong with a request, or with one field of it. */
export interface Problem {
  readonly field?: string;
  readonly message: string;
}

/** What there is to say of an endpoint beyond its declaration. */
export interface Note {
  /** Paragraphs. */
  readonly description: readonly string[];
  /** What each path parameter is here, where that is not what it is everywhere. */
  readonly params?: Readonly<Record<string, { readonly description: string; readonly example: string }>>;
  /** A request body that works, where the examples of all fields together do not. */
  readonly body?: unknown;
  /** An answer, where the examples of all fields together say something else. */
  readonly answer?: unknown;
  /** Its own errors, by status. */
  readonly problems?: Readonly<Record<number, readonly Problem[]>>;
  /** Limits of the tenant that it can reach, such as `25 users`: 403. */
  readonly limits?: readonly string[];
  /** Whole bodies of errors, where they are no messages. */
  readonly errorExamples?: Readonly<Record<number, unknown>>;
  /** Works while the appliance is sealed. */
  readonly whileSealed?: true;
  /** Belongs to no tenant: every host answers it. */
  readonly tenantless?: true;
}
