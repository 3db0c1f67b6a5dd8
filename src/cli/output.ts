// Output for people and programs: JSON unchanged, or tables and sentences in which text from a server cannot control
// the terminal.
import { KmsError } from '../errors.ts';
import type { Cli, CliOf } from './command.ts';
import type { paged } from './grammar/option-sets.ts';
import { hasColour, isBrokenPipe, say, write } from './io.ts';
import { type Column, pairs, type TableStyle, table } from './table.ts';
import { visible } from './text.ts';

export function printJson(cli: Cli, value: unknown): Promise<void> {
  return write(cli.io.stdout, `${JSON.stringify(value, null, 2)}\n`);
}

/** Prints one sentence or line. */
export function printLine(cli: Cli, line: string): Promise<void> {
  return write(cli.io.stdout, `${visible(line)}\n`);
}

export type Pair = readonly [name: string, value: string | number | boolean | undefined];

/** Prints one thing: its JSON, or its named values. Undefined ones are left out. */
export async function printThing(cli: Cli, json: unknown, entries: readonly Pair[]): Promise<void> {
  if (cli.json) return printJson(cli, json);
  const shown = entries.flatMap(([name, value]) => (value === undefined ? [] : ([[name, value]] as const)));
  await write(cli.io.stdout, `${pairs(shown).join('\n')}\n`);
}

/**
 * Prints something that is shown only once. If it cannot be written, throws `refused`, which says what exists anyway
 * (`left`) and what to do about it.
 */
export async function showOnce(show: Promise<void>, left: string, advice: string): Promise<void> {
  try {
    await show;
  } catch (cause) {
    throw new KmsError('refused', visible(`${whyNotShown(cause)}; ${left}`), { hint: visible(advice), cause });
  }
}

/** The reason in words. */
export function whyNotShown(error: unknown): string {
  if (isBrokenPipe(error)) return 'nobody reads the output';
  return error instanceof Error ? error.message : String(error);
}

/** Prints rows as a table. */
export function printTable<T>(cli: Cli, rows: readonly T[], columns: readonly Column<T>[]): Promise<void> {
  return write(cli.io.stdout, `${table(rows, columns, styleOf(cli)).join('\n')}\n`);
}

interface PageAnswer<T> {
  readonly data: readonly T[];
  readonly pagination: {
    readonly limit: number;
    readonly count: number;
    readonly hasMore: boolean;
    readonly nextCursor?: string;
  };
}

interface PageInput {
  readonly cursor?: string;
  readonly limit?: number;
}

interface ListStyle<T> {
  readonly columns: readonly Column<T>[];
  /** Message on stderr for an empty list. */
  readonly empty: string;
  /** Maximum of items without --limit; undefined for all. */
  readonly usual?: number | undefined;
}

const pageSize = 1000;

/** Prints a list: all pages as one, or the single page that --limit or --cursor selects. */
export async function printList<T, Input extends object>(
  cli: CliOf<typeof paged>,
  method: (input: Input & PageInput) => Promise<PageAnswer<T>>,
  input: Input,
  { columns, empty, usual }: ListStyle<T>,
): Promise<void> {
  const cursor = cli.get('--cursor');
  const limit = cli.get('--limit') ?? (cursor === undefined && usual !== undefined ? usual : undefined);
  const onePage = cursor !== undefined || limit !== undefined;
  const page = onePage
    ? await method({ ...input, ...(cursor === undefined ? {} : { cursor }), ...(limit === undefined ? {} : { limit }) })
    : await allPages(method, input);
  if (cli.json) return printJson(cli, page);
  if (page.data.length === 0) return say(cli.io, empty);
  await printTable(cli, page.data, columns);
  const { nextCursor } = page.pagination;
  if (nextCursor !== undefined) await say(cli.io, `there is more: add --cursor ${visible(nextCursor)}`);
}

async function allPages<T, Input extends object>(
  method: (input: Input & PageInput) => Promise<PageAnswer<T>>,
  input: Input,
): Promise<PageAnswer<T>> {
  const { items } = await import('../client/pages.ts');
  const data: T[] = [];
  for await (const item of items(method, { ...input, limit: pageSize })) data.push(item);
  return wholeList(data);
}

/** A complete list in the form of a page, as `--json` prints every list. */
export function wholeList<T>(data: readonly T[]): PageAnswer<T> {
  return { data, pagination: { limit: Math.max(pageSize, data.length), count: data.length, hasMore: false } };
}

export function styleOf(cli: Cli): TableStyle {
  const { stdout } = cli.io;
  return { columns: stdout.isTTY ? stdout.columns || 80 : undefined, colour: hasColour(cli.io, stdout) };
}
