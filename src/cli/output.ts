// Answers on their way to people and programs: JSON as it came, or tables and sentences in which nothing from a server
// can play tricks on the terminal.
import { KmsError } from '../errors.ts';
import type { Cli, CliOf } from './command.ts';
import type { paged } from './grammar/option-sets.ts';
import { hasColour, isBrokenPipe, say, write } from './io.ts';
import { type Column, pairs, type TableStyle, table } from './table.ts';
import { visible } from './text.ts';

export function printJson(cli: Cli, value: unknown): Promise<void> {
  return write(cli.io.stdout, `${JSON.stringify(value, null, 2)}\n`);
}

/** One sentence or line. */
export function printLine(cli: Cli, line: string): Promise<void> {
  return write(cli.io.stdout, `${visible(line)}\n`);
}

export type Pair = readonly [name: string, value: string | number | boolean | undefined];

/** One thing: its JSON, or its named values. Those that are undefined are left out. */
export async function printThing(cli: Cli, json: unknown, entries: readonly Pair[]): Promise<void> {
  if (cli.json) return printJson(cli, json);
  const shown = entries.flatMap(([name, value]) => (value === undefined ? [] : ([[name, value]] as const)));
  await write(cli.io.stdout, `${pairs(shown).join('\n')}\n`);
}

/**
 * Shows what nobody is told again. Where it could not be written, throws `refused`, which says what is there without it
 * (`left`) and what to do about that.
 */
export async function showOnce(show: Promise<void>, left: string, advice: string): Promise<void> {
  try {
    await show;
  } catch (cause) {
    throw new KmsError('refused', visible(`${whyNotShown(cause)}; ${left}`), { hint: visible(advice), cause });
  }
}

/** In words. */
export function whyNotShown(error: unknown): string {
  if (isBrokenPipe(error)) return 'nobody reads the output';
  return error instanceof Error ? error.message : String(error);
}

/** Rows under each other. */
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
  /** What is said on stderr where there is nothing. */
  readonly empty: string;
  /** Items when --limit is not given; undefined = all. */
  readonly usual?: number | undefined;
}

const pageSize = 1000;

/** A list: all pages as one, or with --limit or --cursor the one page that they name. */
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

/** A list as `--json` prints every one: in the form of a page. */
export function wholeList<T>(data: readonly T[]): PageAnswer<T> {
  return { data, pagination: { limit: Math.max(pageSize, data.length), count: data.length, hasMore: false } };
}

export function styleOf(cli: Cli): TableStyle {
  const { stdout } = cli.io;
  return { columns: stdout.isTTY ? stdout.columns || 80 : undefined, colour: hasColour(cli.io, stdout) };
}
