// The journal of an upgrade: one file in the data directory, there from the upgrade's first step to its last, which
// says how far it is. What serves the directory looks at it too: while the step holds clients, nobody but the upgrade
// itself is answered, so that nothing can be acknowledged that going back would lose.

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
 * In the order in which an upgrade takes them; `holds`: clients are not served, `back`: the upgrade failed, and what
 * was before comes back.
 */
export const steps = {
  staging: { holds: false, back: false, does: 'writes the new executable beside the one in use' },
  'backing-up': { holds: false, back: false, does: 'makes a backup in the data directory' },
  probing: { holds: false, back: false, does: 'has something encrypted, to be decrypted by the new version' },
  stopping: { holds: true, back: false, does: 'stops the server' },
  copying: { holds: true, back: false, does: 'copies the data aside, in the data directory' },
  swapping: { holds: true, back: false, does: 'puts the new executable in the place of the one in use' },
  trying: { holds: true, back: false, does: 'starts the new version, which serves nobody, and checks it' },
  passed: { holds: false, back: false, does: 'lets clients in, and throws the copy away' },
  'ending-trial': { holds: true, back: true, does: 'stops the new version' },
  clearing: { holds: true, back: true, does: 'removes what the new version made of the data' },
  'putting-back': { holds: true, back: true, does: 'puts the copy of the data back' },
  'swapping-back': { holds: true, back: true, does: 'puts the former executable back' },
  'starting-again': { holds: true, back: true, does: 'starts the former version and checks it' },
  returned: { holds: false, back: true, does: 'lets clients in, and throws away what is left of the upgrade' },
} as const;

export type Step = keyof typeof steps;

/** How the server is stopped and started. */
export type Service =
  | { readonly kind: 'systemd'; readonly unit: string; readonly user: boolean }
  | { readonly kind: 'commands'; readonly stop: string; readonly start: string }
  /** It did not run, and will not. */
  | { readonly kind: 'none' };

/** Something that the old version encrypted, and what it said when it was asked to decrypt it. */
export interface Probe {
  readonly tenant: string;
  readonly header: string;
  readonly answer: unknown;
}

export interface Journal {
  readonly format: 1;
  readonly step: Step;
  /** Shown by the upgrade to a server that holds clients. */
  readonly token: string;
  readonly executable: string;
  /** SHA-256 in hex. */
  readonly from: { readonly version: string; readonly sha256: string };
  readonly to: { readonly version: string; readonly sha256: string };
  readonly service: Service;
  readonly probes: readonly Probe[];
  /** Name of the backup in the data directory; absent where the data are in a database, which stays as it is. */
  readonly backup?: string;
  /** Why it goes back. */
  readonly reason?: string;
  /** RFC 3339. */
  readonly startedAt: string;
}

/** Bytes; what is tried for five tenants takes some thousands. */
const longestJournal = 1024 * 1024;

/** Throws `corrupt` for a journal that cannot be read. Undefined where no upgrade is under way. */
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

/** It is written whole or not at all, so that its form says enough. */
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

/** The header in which the upgrade shows the token. */
export const upgradeHeader = 'kms-upgrade';

const underWay = (step: Step): KmsError =>
  new KmsError('unavailable', `an upgrade is under way (${step}): nobody is served until it is done`, {
    hint: 'wait a moment; `kms upgrade --status` says how far it is, and `kms upgrade --resume` ends one that was cut off',
    retryAfter: 2,
  });

/** Throws `unavailable` while an upgrade holds clients off the data directory. */
export async function needNoUpgrade(data: string): Promise<void> {
  const journal = await readJournal(data);
  if (journal && steps[journal.step].holds) throw underWay(journal.step);
}

/** How often a server looks at the journal that keeps it from serving, in milliseconds. */
const pause = 100;

/** In these a server is started, to be checked. */
const trials: readonly Step[] = ['trying', 'starting-again'];

/**
 * Waits while an upgrade that is running works on executable and data: a supervisor starts what was ended again, at
 * once. Throws `unavailable` after that, as another executable may be in this one's place by then. Where an upgrade was
 * cut off nobody waits.
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

/** Whether the upgrade is, which holds its lock. */
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

/** What a server has that was started while an upgrade holds clients. */
export interface Hold {
  /** Whether the headers are those of the upgrade itself. */
  isUpgrade(headers: Readonly<Record<string, unknown>>): boolean;
  /** What everybody else is told. */
  readonly refusal: KmsError;
  /** Resolves when clients may come; never, once `end` was called before. */
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
