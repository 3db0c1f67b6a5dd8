// `kms activity search --watch`: polls for new records and prints each once, until interrupted. It waits for a server
// that is unreachable, and leaves out the records of its own searches.
import { setTimeout } from 'node:timers/promises';
import type { Activity } from '../api/activity.ts';
import type { Client, InputOf } from '../client/client.ts';
import { KmsError } from '../errors.ts';
import { ownRecordHeader } from '../model/names.ts';
import { sayOfFilters } from './activity-filters.ts';
import { Callers } from './caller-names.ts';
import type { Cli, CliOf } from './command.ts';
import { withServer } from './connect.ts';
import type { activity } from './grammar/activity.ts';
import { say, write } from './io.ts';
import { hiddenText, styleOf } from './output.ts';
import { type Column, tableWriter } from './table.ts';
import { visible } from './text.ts';

type Filters = InputOf<'searchActivity'>;

const usualPause = 2000;
const longestPause = 3_600_000;

export async function watchActivity(
  cli: CliOf<typeof activity.search>,
  filtersOf: (client: Client) => Promise<Filters>,
  columnsOf: (callers: Callers) => readonly Column<Activity>[],
): Promise<void> {
  for (const option of ['--all', '--cursor'] as const) {
    if (cli.isTyped(option)) throw cli.wrong(`${option} and --watch exclude each other`);
  }
  const pause = cli.get('--every') ?? usualPause;
  if (pause > longestPause) throw cli.wrong('--every: expected 1s to 1h');
  const count = cli.get('--limit') ?? 0;
  try {
    await withServer(cli, async ({ clientThatShows }) => {
      const own: string[] = [];
      const client = clientThatShows(({ headers }) => {
        own.push(headers.get(ownRecordHeader) ?? '');
        if (own.length > ownRemembered) own.shift();
      });
      const filters = await filtersOf(client);
      await sayOfFilters(cli, client);
      const print = printer(cli, columnsOf, new Callers(cli, client), own);
      const news = await newcomers((page) => client.searchActivity({ ...filters, ...page }), count);
      await print(news.before);
      for (;;) {
        await setTimeout(pause, undefined, { signal: cli.io.signal });
        await print(await patiently(cli, news, pause));
      }
    });
  } catch (error) {
    // An interruption is the normal end.
    if (!cli.io.signal.aborted) throw error;
  }
}

/** Own records remembered: each search shows up in the next one. */
const ownRemembered = 100;

/** Minimum widths, so that later rows stay aligned with the titles. */
const usualWidths = [8, 7, 18, 12, 11, 12, 9, 6, 10];

const passing: ReadonlySet<string> = new Set(['unavailable', 'sealed', 'rate-limited']);

/** Polls until there is an answer; says once that it is waiting. */
async function patiently<T>(cli: Cli, news: Newcomers<T>, pause: number): Promise<readonly T[]> {
  for (let tries = 0; ; tries++) {
    try {
      const found = await news.look();
      if (tries > 0) await say(cli.io, 'it answers again');
      return found;
    } catch (error) {
      if (!(error instanceof KmsError) || !passing.has(error.code) || cli.io.signal.aborted) throw error;
      if (tries === 0) await say(cli.io, `${visible(error.message)}; trying again`);
      await setTimeout(pause, undefined, { signal: cli.io.signal });
    }
  }
}

function printer(
  cli: Cli,
  columnsOf: (callers: Callers) => readonly Column<Activity>[],
  callers: Callers,
  own: readonly string[],
): (records: readonly Activity[]) => Promise<void> {
  let hidden = 0;
  const onHidden = (count: number): void => {
    hidden = count;
  };
  const toLines = cli.json
    ? (records: readonly Activity[]) => records.map((record) => JSON.stringify(record))
    : tableWriter(columnsOf(callers), { ...styleOf(cli, 'clock'), onHidden }, usualWidths);
  return async (records) => {
    const news = records.filter(({ id }) => !own.includes(id));
    await callers.meet(news.map(({ keyid }) => keyid));
    const lines = toLines(news);
    if (lines.length > 0) await write(cli.io.stdout, `${lines.join('\n')}\n`);
    if (hidden > 0) await say(cli.io, hiddenText(hidden));
    hidden = 0;
  };
}

interface Found {
  readonly id: string;
}

interface FoundPage<T> {
  readonly data: readonly T[];
  readonly pagination: { readonly nextCursor?: string };
}

interface Newcomers<T> {
  /** Records since the last look, oldest first. */
  look(): Promise<readonly T[]>;
  /** The newest `count` records at the beginning, oldest first. */
  readonly before: readonly T[];
}

/** Ids remembered: the last record seen may be gone at the next look, as after a restore. */
const remembered = 10_000;
const firstPage = 100;
const laterPages = 1000;

/** Polls a search that returns newest first, and yields each record once, however many came since the last look. */
export async function newcomers<T extends Found>(
  search: (page: { readonly limit: number; readonly cursor?: string }) => Promise<FoundPage<T>>,
  count: number,
): Promise<Newcomers<T>> {
  const first = (await search({ limit: Math.max(count, firstPage) })).data;
  // Ids of one kind sort by time.
  const oldest = first.at(-1)?.id ?? '';
  const known = new Set(first.map(({ id }) => id).toReversed());

  function remember(records: readonly T[]): void {
    for (const { id } of records) known.add(id);
    for (const id of known) {
      if (known.size <= remembered) return;
      known.delete(id);
    }
  }

  async function look(): Promise<readonly T[]> {
    const fresh: T[] = [];
    let hasMet = known.size === 0;
    let cursor: string | undefined;
    do {
      const page = await search({
        limit: cursor === undefined ? firstPage : laterPages,
        ...(cursor !== undefined && { cursor }),
      });
      const met = page.data.findIndex(({ id }) => known.has(id));
      fresh.push(...page.data.slice(0, met < 0 ? undefined : met));
      hasMet ||= met >= 0;
      // If no known record is left, stop where everything is older.
      if (met >= 0 || (page.data.length > 0 && page.data.every(({ id }) => id < oldest))) break;
      cursor = page.pagination.nextCursor;
    } while (cursor !== undefined);
    const shown = (hasMet ? fresh : fresh.filter(({ id }) => id > oldest)).toReversed();
    remember(shown);
    return shown;
  }

  return { look, before: count === 0 ? [] : first.slice(0, count).toReversed() };
}
