// Output for people and programs: JSON unchanged, or tables and sentences in which text from a server cannot control
// the terminal.
import { getHeapStatistics } from 'node:v8';
import { KmsError } from '../errors.ts';
import { timestamp } from '../model/timestamp.ts';
import type { Cli, CliOf } from './command.ts';
import type { paged } from './grammar/option-sets.ts';
import { fitted, hasColour, isBrokenPipe, say, write } from './io.ts';
import { type Column, pairs, type TableStyle, table } from './table.ts';
import { readableTime, type ShortTimes, visible } from './text.ts';

export function printJson(cli: Cli, value: unknown): Promise<void> {
  return write(cli.io.stdout, `${JSON.stringify(value, null, 2)}\n`);
}

/** A time in UTC in a sentence on `stream`: as text, and on a terminal a local one, unless --wide is given. */
export function timeOn(cli: Cli, stream: 'stdout' | 'stderr', time: number | string): string {
  const text = typeof time === 'number' ? timestamp(time) : time;
  return cli.io[stream].isTTY && !cli.globals.get('--wide') ? readableTime(text, Date.now()) : text;
}

/** Prints one sentence or line. */
export function printLine(cli: Cli, line: string): Promise<void> {
  return write(cli.io.stdout, `${fitted(cli.io.stdout, visible(line))}\n`);
}

export type Pair = readonly [name: string, value: string | number | boolean | undefined];

/**
 * Prints one thing: its JSON, or its named values. Undefined ones are left out. On a terminal times are local ones and
 * long values have several lines, unless all has to stay `exact`, since another command reads it.
 */
export async function printThing(cli: Cli, json: unknown, entries: readonly Pair[], exact?: 'exact'): Promise<void> {
  if (cli.json) return printJson(cli, json);
  const isReadable = exact === undefined && cli.io.stdout.isTTY && !cli.globals.get('--wide');
  const now = Date.now();
  const shown = entries.flatMap(([name, value]) => {
    if (value === undefined) return [];
    return [[name, isReadable && typeof value === 'string' ? readableTime(value, now) : value] as const];
  });
  await write(cli.io.stdout, `${pairs(shown, isReadable ? cli.io.stdout.columns : undefined).join('\n')}\n`);
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

/** Prints rows as a table, and on stderr how many columns there was no room for. */
export async function printTable<T>(cli: Cli, rows: readonly T[], columns: readonly Column<T>[]): Promise<void> {
  let hidden = 0;
  const onHidden = (count: number): void => {
    hidden = count;
  };
  const lines = table(rows, columns, { ...styleOf(cli, { now: Date.now() }), onHidden });
  await write(cli.io.stdout, `${lines.join('\n')}\n`);
  if (hidden > 0) await say(cli.io, hiddenText(hidden));
}

export function hiddenText(count: number): string {
  return count === 1 ? '1 column hidden; --wide shows it' : `${count} columns hidden; --wide shows them`;
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
  /** Columns, which may depend on the rows. */
  readonly columns: readonly Column<T>[] | ((rows: readonly T[]) => readonly Column<T>[]);
  /** Called with the rows before they are shown as a table. */
  readonly before?: (rows: readonly T[]) => Promise<void>;
  /** Rows that are shown, where the appliance cannot choose them. */
  readonly only?: (row: T) => boolean;
  /** Message on stderr for an empty list. */
  readonly empty: string;
  /** Called after it; with --json, too, which has no message. */
  readonly onEmpty?: () => Promise<void>;
  /** The appliance lists oldest first: a table of all is turned round. */
  readonly oldestFirst?: true;
  /** Active ones come before all others in a table of all. */
  readonly isActive?: (row: T) => boolean;
  /** Maximum of items without --limit; undefined for all. */
  readonly usual?: number | undefined;
}

const pageSize = 1000;

/** Prints a list: all pages as one, or the single page that --limit or --cursor selects. */
export async function printList<T, Input extends object>(
  cli: CliOf<typeof paged>,
  method: (input: Input & PageInput) => Promise<PageAnswer<T>>,
  input: Input,
  style: ListStyle<T>,
): Promise<void> {
  const { columns, before, empty, onEmpty, usual } = style;
  const cursor = cli.get('--cursor');
  const limit = cli.get('--limit') ?? (cursor === undefined && usual !== undefined ? usual : undefined);
  const onePage = cursor !== undefined || limit !== undefined;
  const page = onePage
    ? await method({ ...input, ...(cursor === undefined ? {} : { cursor }), ...(limit === undefined ? {} : { limit }) })
    : await allPages(method, input, style.only);
  if (cli.json) await printJson(cli, page);
  else if (page.data.length === 0) await say(cli.io, empty);
  if (page.data.length === 0) await onEmpty?.();
  if (cli.json || page.data.length === 0) return;
  await before?.(page.data);
  const rows = onePage ? page.data : inOrder(page.data, style);
  await printTable(cli, rows, typeof columns === 'function' ? columns(rows) : columns);
  const { nextCursor } = page.pagination;
  if (nextCursor !== undefined) await say(cli.io, `there is more: add --cursor ${visible(nextCursor)}`);
}

/** The newest and active first. */
function inOrder<T>(rows: readonly T[], { oldestFirst, isActive }: ListStyle<T>): readonly T[] {
  const newest = oldestFirst ? rows.toReversed() : rows;
  return isActive ? [...newest.filter(isActive), ...newest.filter((row) => !isActive(row))] : newest;
}

async function allPages<T, Input extends object>(
  method: (input: Input & PageInput) => Promise<PageAnswer<T>>,
  input: Input,
  only: (row: T) => boolean = () => true,
): Promise<PageAnswer<T>> {
  const { pages } = await import('../client/pages.ts');
  const data: T[] = [];
  for await (const page of pages(method, { ...input, limit: pageSize })) {
    for (const item of page.data) if (only(item)) data.push(item);
    needMemory(data.length);
  }
  return wholeList(data);
}

/** Part of the memory for objects that a list may take. */
const mostOfHeap = 0.7;

/** Throws `refused` before the runtime would end for lack of memory: a list may be longer, or have no end. */
function needMemory(items: number): void {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  if (used < limit * mostOfHeap) return;
  throw new KmsError('refused', `the list is longer than this command can hold: ${items} items, and there are more`, {
    hint: 'get it in parts, with --limit and --cursor; if there are not as many, see what answers at that address',
  });
}

/** A complete list in the form of a page, as `--json` prints every list. */
export function wholeList<T>(data: readonly T[]): PageAnswer<T> {
  return { data, pagination: { limit: Math.max(pageSize, data.length), count: data.length, hasMore: false } };
}

/** The style of tables on stdout: `short` applies to a terminal without --wide. */
export function styleOf(cli: Cli, short: ShortTimes): TableStyle {
  const { stdout } = cli.io;
  const colour = hasColour(cli.io, stdout);
  if (!stdout.isTTY || cli.globals.get('--wide')) return { columns: undefined, colour };
  return { columns: stdout.columns || 80, colour, short };
}

/** Says on stderr why the result should not be trusted blindly. */
export async function sayWarning(cli: Cli, warning: string | undefined): Promise<void> {
  if (warning !== undefined) await say(cli.io, `warning: ${visible(warning)}`);
}
