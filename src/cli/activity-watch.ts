// `kms activity search --watch`: asks again and again for what is new, and shows it, until somebody has seen enough. A server that goes
// away is waited for. The records of its own questions are left out.
import { setTimeout } from 'node:timers/promises';
import { type Activity, ownRecordHeader } from '../api/activity.ts';
import type { InputOf } from '../client/client.ts';
import { KmsError } from '../errors.ts';
import { accountIdOf } from './account-id.ts';
import type { Cli } from './cli.ts';
import { activityColumns } from './commands/activity/shown.ts';
import { duration } from './duration.ts';
import { say, write } from './io.ts';
import { type Newcomers, newcomers } from './newcomers.ts';
import { styleOf } from './output.ts';
import { withServer } from './seal-connection.ts';
import { tableWriter } from './table.ts';
import { visible } from './visible.ts';

type Filters = InputOf<'searchActivity'>;

const usualPause = 2000;
const longestPause = 3_600_000;

export async function watchActivity(cli: Cli, filters: Filters, account: string | undefined): Promise<void> {
  for (const option of ['--all', '--cursor']) {
    if (cli.isTyped(option)) throw usage(cli, `${option} and --watch exclude each other`);
  }
  const pause = duration(cli, '--every') ?? usualPause;
  if (pause > longestPause) throw usage(cli, '--every: expected 1s to 1h');
  const count = cli.integer('--limit') ?? 0;
  try {
    await withServer(cli, async ({ clientThatShows }) => {
      const own: string[] = [];
      const client = clientThatShows(({ headers }) => {
        own.push(headers.get(ownRecordHeader) ?? '');
        if (own.length > ownRemembered) own.shift();
      });
      const accountId = account === undefined ? {} : { accountId: await accountIdOf(client, account) };
      const print = printer(cli, own);
      const news = await newcomers((page) => client.searchActivity({ ...filters, ...accountId, ...page }), count);
      await print(news.before);
      for (;;) {
        await setTimeout(pause, undefined, { signal: cli.io.signal });
        await print(await patiently(cli, news, pause));
      }
    });
  } catch (error) {
    // To be ended is what it waits for.
    if (!cli.io.signal.aborted) throw error;
  }
}

/** A question is found by the one after it. */
const ownRemembered = 100;

/** So that the titles stand above what comes later. */
const usualWidths = [24, 18, 12, 7, 6, 5, 30];

const passing: ReadonlySet<string> = new Set(['unavailable', 'sealed', 'rate-limited']);

/** Looks until there is an answer; says once that it waits. */
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

function printer(cli: Cli, own: readonly string[]): (records: readonly Activity[]) => Promise<void> {
  const toLines = cli.json
    ? (records: readonly Activity[]) => records.map((record) => JSON.stringify(record))
    : tableWriter(activityColumns, styleOf(cli), usualWidths);
  return async (records) => {
    const lines = toLines(records.filter(({ id }) => !own.includes(id)));
    if (lines.length > 0) await write(cli.io.stdout, `${lines.join('\n')}\n`);
  };
}

function usage(cli: Cli, message: string): KmsError {
  return new KmsError('usage', message, { hint: cli.seeHelp });
}
