// The journal of an upgrade: one file in the data directory, from the first step to the last, with the current step. A
// server on the directory reads it too: while the step holds clients, only the upgrade itself is answered, so that
// nothing is acknowledged that going back would lose.

import { timingSafeEqual } from 'node:crypto';
import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fromUtf8 } from '../crypto/bytes.ts';
import { KmsError, systemCode, systemError } from '../errors.ts';
import { isJsonObject } from '../model/json.ts';
import { inDir, upgradeJournal, upgradeLock } from '../platform/data-dir.ts';
import { lockDirectory } from '../platform/lock.ts';
import { nodeFiles } from '../platform/node-files.ts';

/**
 * In the order of an upgrade. `holds`: clients are not served; `back`: the upgrade failed, and the former state is
 * restored.
 */
export const steps = {
  staging: { holds: false, back: false, does: 'writes the new executable beside the one in use' },
  'backing-up': { holds: false, back: false, does: 'makes a backup in the data directory' },
  probing: { holds: false, back: false, does: 'has something encrypted, to be decrypted by the new version' },
  stopping: { holds: true, back: false, does: 'stops the server' },
  copying: { holds: true, back: false, does: 'copies the data aside, in the data directory' },
  swapping: { holds: true, back: false, does: 'replaces the executable in use with the new one' },
  trying: { holds: true, back: false, does: 'starts the new version, which serves no client yet, and checks it' },
  passed: { holds: false, back: false, does: 'lets clients in, and throws the copy away' },
  'ending-trial': { holds: true, back: true, does: 'stops the new version' },
  clearing: { holds: true, back: true, does: 'removes what the new version made of the data' },
  'putting-back': { holds: true, back: true, does: 'puts the copy of the data back' },
  'swapping-back': { holds: true, back: true, does: 'puts the former executable back' },
  'starting-again': { holds: true, back: true, does: 'starts the former version and checks it' },
  returned: { holds: false, back: true, does: 'lets clients in, and throws away what is left of the upgrade' },
} as const;

export type Step = keyof typeof steps;

/** The way to stop and start the server. */
export type Service =
  | { readonly kind: 'systemd'; readonly unit: string; readonly user: boolean }
  | { readonly kind: 'commands'; readonly stop: string; readonly start: string }
  /** It was not running, and stays stopped. */
  | { readonly kind: 'none' };

/** A header encrypted by the old version, with that version's answer to decrypting it. */
export interface Probe {
  readonly tenant: string;
  readonly header: string;
  readonly answer: unknown;
}

export interface Journal {
  readonly format: 1;
  readonly step: Step;
  /** Authenticates the upgrade to a server that holds clients. */
  readonly token: string;
  readonly executable: string;
  /** SHA-256 in hex. */
  readonly from: { readonly version: string; readonly sha256: string };
  readonly to: { readonly version: string; readonly sha256: string };
  readonly service: Service;
  readonly probes: readonly Probe[];
  /** Name of the backup in the data directory; absent if the data are in a database, which is left as it is. */
  readonly backup?: string;
  /** Why the upgrade goes back. */
  readonly reason?: string;
  /** RFC 3339. */
  readonly startedAt: string;
}

/** In bytes; the probes of five tenants take some thousands. */
const longestJournal = 1024 * 1024;

/** Throws `corrupt` for an unreadable journal. Undefined if no upgrade is under way. */
export async function readJournal(data: string): Promise<Journal | undefined> {
  const path = inDir(data, upgradeJournal);
  let text: string;
  try {
    text = fromUtf8(await nodeFiles(data).read(upgradeJournal, longestJournal)) ?? '';
  } catch (error) {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'ENOTDIR') return undefined;
    throw systemError(error, path);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {}
  if (isJournal(value)) return value;
  throw new KmsError('corrupt', `${path}: expected the journal of an upgrade`, {
    hint: 'it was damaged, or written by a newer kms: take that one, or see docs/upgrading.md for what to do by hand',
  });
}

/** Written atomically, so that checking its shape is enough. */
function isJournal(value: unknown): value is Journal {
  return (
    isJsonObject(value) &&
    value.format === 1 &&
    typeof value.step === 'string' &&
    Object.hasOwn(steps, value.step) &&
    typeof value.token === 'string' &&
    typeof value.executable === 'string' &&
    isJsonObject(value.from) &&
    isJsonObject(value.to) &&
    isJsonObject(value.service) &&
    Array.isArray(value.probes)
  );
}

/** The header in which the upgrade sends the token. */
export const upgradeHeader = 'kms-upgrade';

const underWay = (step: Step): KmsError =>
  new KmsError('unavailable', `an upgrade is under way (${step}): no client is served until it is done`, {
    hint: 'wait a moment; `kms upgrade --status` says how far it is, and `kms upgrade --resume` finishes one that was cut off',
    retryAfter: 2,
  });

/** Throws `unavailable` while an upgrade holds clients off the data directory. */
export async function needNoUpgrade(data: string): Promise<void> {
  const journal = await readJournal(data);
  if (journal && steps[journal.step].holds) throw underWay(journal.step);
}

/** Milliseconds between a server's checks of the journal that keeps it from serving. */
const pause = 100;

/** Steps in which a server is started for a check. */
const trials: readonly Step[] = ['trying', 'starting-again'];

/**
 * Waits while a running upgrade works on executable and data: a supervisor restarts a stopped server at once. Then
 * throws `unavailable`, as another executable may be in place by now. Does not wait for an upgrade that was cut off.
 */
export async function stayOut(data: string, signal?: AbortSignal): Promise<void> {
  for (let waited = false; ; waited = true) {
    const journal = await readJournal(data);
    const isBusy = journal && steps[journal.step].holds && !trials.includes(journal.step) && isRunning(data);
    if (!isBusy) {
      if (!waited) return;
      throw new KmsError('unavailable', 'an upgrade was under way, which may have put another executable here', {
        hint: 'start it again; a supervisor does that by itself',
      });
    }
    await delay(pause, undefined, signal && { signal });
  }
}

/** Whether the upgrade is running, by its lock. */
function isRunning(data: string): boolean {
  if (!existsSync(inDir(data, upgradeLock))) return false;
  try {
    lockDirectory(data, { onlyLooks: true, name: upgradeLock }).release();
    return false;
  } catch (error) {
    if (error instanceof KmsError && error.code === 'in-use') return true;
    throw error;
  }
}

/** The hold on a server that was started while an upgrade holds clients. */
export interface Hold {
  /** Whether the headers are of the upgrade itself. */
  isUpgrade(headers: Readonly<Record<string, unknown>>): boolean;
  /** The error for all other requests. */
  readonly refusal: KmsError;
  /** Resolves when clients may be served; never, if `end` was called before. */
  readonly released: Promise<void>;
  end(): void;
}

export async function holdOf(data: string): Promise<Hold | undefined> {
  const journal = await readJournal(data);
  if (!journal || !steps[journal.step].holds) return undefined;
  const { promise, resolve } = Promise.withResolvers<void>();
  const token = Buffer.from(journal.token);
  const timer = setInterval(async () => {
    const now = await readJournal(data).catch(() => journal);
    if (now && steps[now.step].holds) return;
    clearInterval(timer);
    resolve();
  }, pause).unref();
  return {
    isUpgrade({ [upgradeHeader]: shown }) {
      const bytes = Buffer.from(typeof shown === 'string' ? shown : '');
      return bytes.length === token.length && timingSafeEqual(bytes, token);
    },
    refusal: underWay(journal.step),
    released: promise,
    end: () => clearInterval(timer),
  };
}
