// Rollback guard of the command line: checks that the expected appliance answers, remembers the state of each appliance
// in files below $XDG_STATE_HOME/kms, and warns if one comes back older than it was.
import { readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { boundedJson, longestAnswer } from '../client/bounded.ts';
import { errorOfAnswer, errorOfFailure } from '../client/failure.ts';
import {
  formatState,
  isLater,
  parseState,
  type RollbackWatch,
  rollbackWatch,
  type SeenState,
  type StateMemory,
} from '../client/rollback.ts';
import { KmsError } from '../errors.ts';
import { stateHeader } from '../model/names.ts';
import type { Cli } from './command.ts';
import { stoppable } from './fetch.ts';
import { type Io, pathFrom, say } from './io.ts';
import { visible } from './text.ts';

type Send = (request: Request) => Promise<Response>;

export interface Watched {
  /** The signal to stop ends requests of the first, and leaves those of the second to their end. */
  readonly fetches: { readonly fetch: Send; readonly steadyFetch: Send };
  /** The id of the appliance that answers; undefined if it does not reveal it. Throws `sealed`. */
  applianceId(): Promise<string | undefined>;
  /** State in the last answer to a known caller. */
  seen(): SeenState | undefined;
  /** Saves the states seen. */
  save(): Promise<void>;
}

/**
 * Each answer to a known caller carries the appliance's id and state; for other callers, the health check has the id.
 */
export function watched(cli: Cli, reach: Send, baseUrl: string): Watched {
  const send = stoppable(cli.io.signal, reach);
  const expected = cli.globals.get('--expect-appliance');
  const watch = watchRollbacks(cli.io, expected);
  let seen: SeenState | undefined;
  let isChecked = false;
  const watching =
    (via: Send): Send =>
    async (request) => {
      await watch.ready;
      // Before a credential or anything else is sent.
      if (expected !== undefined && !isChecked) needAppliance(expected, await askedId(send, baseUrl));
      isChecked = true;
      const response = await via(request);
      seen = parseState(response.headers.get(stateHeader)) ?? seen;
      await watch.see(response);
      return response;
    };
  return {
    seen: () => seen,
    fetches: { fetch: watching(send), steadyFetch: watching(stoppable(new AbortController().signal, reach)) },
    async applianceId() {
      if (seen) return seen.appliance;
      const response = await send(new Request(`${baseUrl}/readyz`)).catch((cause) => {
        throw errorOfFailure(cause, baseUrl, cli.io.signal);
      });
      return idIn(response, baseUrl);
    },
    save: () => watch.save(),
  };
}

/** Undefined if the appliance does not reveal it; an error here will show up in the next request. */
async function askedId(send: Send, baseUrl: string): Promise<string | undefined> {
  return send(new Request(`${baseUrl}/readyz`))
    .then((response) => idIn(response, baseUrl))
    .catch(() => undefined);
}

/** The id in an answer of the health check. Throws `sealed`. */
async function idIn(response: Response, baseUrl: string): Promise<string | undefined> {
  const answer = await boundedJson(response, longestAnswer, baseUrl);
  // A sealed appliance without its keys at hand reveals nothing.
  const error = response.status === 503 ? errorOfAnswer(response, answer, baseUrl) : undefined;
  if (error?.code === 'sealed') throw error;
  const { appliance } = Object(answer);
  return typeof appliance === 'string' && /^[0-9a-f]{32}$/.test(appliance) ? appliance : undefined;
}

/** Throws `refused` if an answer comes from an appliance other than `expected`. */
function watchRollbacks(io: Io, expected: string | undefined): RollbackWatch {
  const dir = directoryOf(io);
  const warn = (why: string) => say(io, visible(`warning: ${why}`));
  const watch = rollbackWatch(dir === undefined ? noMemory : fileMemory(dir, warn), {
    onOlder: (seen, remembered) =>
      say(
        io,
        visible(
          `WARNING: the appliance ${seen.appliance} was set back: it is at transaction ${seen.sequence} of epoch ${seen.epoch}, ` +
            `${howItWas(seen, remembered)}; deleted keys and revoked credentials may be alive again; ask its operator ` +
            '(a `kms restore` would have begun a new epoch); ' +
            `if that was a trial restore, remove ${join(dir ?? '', nameOf(remembered))}`,
        ),
      ),
    onNewEpoch: (seen) =>
      say(
        io,
        visible(
          `the appliance ${seen.appliance} was restored from a copy, or went on from older files on purpose, ` +
            'since it was last used from here',
        ),
      ),
  });
  return {
    ...watch,
    see(response) {
      needAppliance(expected, parseState(response.headers.get(stateHeader))?.appliance);
      return watch.see(response);
    },
  };
}

/** Throws `refused` if another appliance answered; `answered` is undefined if unknown. */
function needAppliance(expected: string | undefined, answered: string | undefined): void {
  if (expected === undefined || answered === undefined || answered === expected) return;
  throw new KmsError('refused', `expected the appliance ${expected}, but ${answered} answered`, {
    hint: 'another appliance is at that place',
  });
}

function howItWas(seen: SeenState, { sequence, epoch }: SeenState): string {
  const was = `at ${sequence} of epoch ${epoch} when last used from here`;
  const isLess = seen.epoch < epoch || (seen.epoch === epoch && seen.sequence < sequence);
  return isLess ? `and was ${was}` : `in another history than the one that was ${was}`;
}

/** Without a place to remember, everything is seen for the first time. */
const noMemory: StateMemory = { load: async () => [], save: async () => undefined };

function directoryOf(io: Io): string | undefined {
  try {
    const { XDG_STATE_HOME } = io.env;
    const base = XDG_STATE_HOME ? pathFrom(io, XDG_STATE_HOME) : join(io.home, '.local', 'state');
    return join(base, 'kms', 'seen');
  } catch {
    return undefined;
  }
}

/** Appliances that one connection adds: usually one, but anything may answer, each time by another name. */
const mostAdded = 16;
/** Files in all: every command reads them, a few at a time. */
const mostKept = 4096;
const atOnce = 64;

/**
 * The memory in a directory: a file per tenant of each appliance, `<appliance>.<tenant>`, with the header's value. No
 * file is removed to make room: a hostile server could have that of another appliance removed.
 */
function fileMemory(dir: string, warn: (why: string) => Promise<void>): StateMemory {
  let there = 0;
  let added = 0;
  let isSaid = false;
  const read = async (name: string): Promise<SeenState | undefined> => {
    const state = parseState((await readFile(join(dir, name), 'utf8').catch(() => '')).trim());
    return state && nameOf(state) === name ? state : undefined;
  };
  return {
    async load() {
      const names = await readdir(dir);
      there = names.length;
      const states: (SeenState | undefined)[] = [];
      for (let at = 0; at < there; at += atOnce) {
        states.push(...(await Promise.all(names.slice(at, at + atOnce).map(read))));
      }
      return states.filter((state) => state !== undefined);
    },
    async save(state) {
      const { makeDirs } = await import('../platform/data-dir.ts');
      await makeDirs(dir);
      // Another command may have seen a later state in the meantime.
      const now = await read(nameOf(state));
      if (now && !isLater(state, now)) return;
      if (!now && (added >= mostAdded || there + added >= mostKept)) {
        if (!isSaid) await warn(notRemembered(dir, added >= mostAdded));
        isSaid = true;
        return;
      }
      if (!now) added += 1;
      const file = join(dir, nameOf(state));
      const draft = `${file}.${Math.random().toString(36).slice(2)}.tmp`;
      await writeFile(draft, `${formatState(state)}\n`, { mode: 0o600 });
      await rename(draft, file);
    },
  };
}

function notRemembered(dir: string, isOneAnswerer: boolean): string {
  const why = isOneAnswerer
    ? `${mostAdded} appliances answered there, and no more are remembered: see that the address is right`
    : `no further appliance is remembered, since ${dir} has ${mostKept} files or more: remove those of appliances that are gone`;
  return `${why}; were one of the others set back, nothing would tell`;
}

function nameOf({ appliance, tenant }: SeenState): string {
  return `${appliance}.${tenant}`;
}
