// Passwords and passphrases on threads of their own. One worker with a bounded queue hashes passwords, so that any
// number of logins takes one core at most and none of the serving thread's time. A custodian's passphrase takes about a
// second, and gets its own thread each time.

import { getPriority, setPriority } from 'node:os';
import { isMainThread, type MessagePort, type Worker } from 'node:worker_threads';
import { hashPassword, passphraseSaltLength, passwordSaltLength, verifyPassword } from '../../crypto/argon2id.ts';
import { fromBase64Url, toBase64Url } from '../../crypto/bytes.ts';
import type { Argon2Cost } from '../../crypto/primitives.ts';
import { systemRandom } from '../../crypto/random.ts';
import { KmsError } from '../../errors.ts';
import type { Slot } from '../../seal/slot.ts';
import { startWorker } from '../program-files.ts';
import { endThread } from './ending.ts';
import { answerOf, type PassphraseWork } from './jobs.ts';
import { requestThread, serveRequests } from './requests.ts';

type Work =
  | { readonly kind: 'hash'; readonly password: string; readonly salt: Uint8Array }
  | { readonly kind: 'verify'; readonly password: string; readonly stored: string };

export interface PasswordWorkerOptions {
  /** Starts a thread that runs `servePasswords`. Called if there is work and no thread. */
  start(): Worker;
  random(length: number): Uint8Array;
  /** Limit of pending requests; further ones are refused. */
  readonly most?: number;
}

/** Hashes and verifies passwords for the core. */
export interface PasswordWorker {
  hash(password: string): Promise<string>;
  verify(stored: string, password: string): Promise<boolean>;
  /** Ends the thread; pending requests are refused. */
  close(): Promise<void>;
}

export function passwordWorker({ start, random, most = 256 }: PasswordWorkerOptions): PasswordWorker {
  const thread = requestThread<Work, string | boolean>({
    start,
    most,
    tooMany: 'too many logins at once',
    lost: 'passwords cannot be checked right now',
  });
  return {
    hash: async (password) => String(await thread.ask({ kind: 'hash', password, salt: random(passwordSaltLength) })),
    verify: async (stored, password) => (await thread.ask({ kind: 'verify', password, stored })) === true,
    close: () => thread.close(),
  };
}

/** The worker's side: answers requests one at a time. */
export function servePasswords(port: MessagePort): void {
  if (!isMainThread) lowerPriority(loginNiceness);
  serveRequests<Work, string | boolean>(
    port,
    (work) =>
      work.kind === 'hash' ? hashPassword(work.password, work.salt) : verifyPassword(work.stored, work.password),
    'a password could not be hashed',
  );
}

/** Niceness that a thread adds for itself, so that threads that answer requests come first on a busy machine. */
const niceness = 10;
/** The same where somebody waits for a login: with 10, five took 35 s beside programs that kept both cores busy. */
const loginNiceness = 3;
/** The highest that there is. */
const mostNice = 19;

let isLowered = false;

/** Lowers the priority of a thread that no request should wait behind; irrevocable. */
export function lowerPriority(by = niceness): void {
  // On Linux 0 means the calling thread, elsewhere the whole process.
  if (isLowered || process.platform !== 'linux') return;
  isLowered = true;
  try {
    setPriority(0, Math.min(mostNice, getPriority(0) + by));
  } catch {
    // If that is forbidden, it takes a full share of the cores.
  }
}

/**
 * Parameters in a passphrase's slot, so that the same secret can be derived after the cost for new ones has changed.
 */
interface PassphraseParams extends Argon2Cost {
  readonly salt: Uint8Array;
}

export function newPassphraseParams(cost: Argon2Cost): PassphraseParams {
  return { ...cost, salt: systemRandom(passphraseSaltLength) };
}

export function passphraseSlotParams({ m, t, p, salt }: PassphraseParams): Slot['params'] {
  return { kdf: 'argon2id', m, t, p, salt: toBase64Url(salt) };
}

export function passphraseParamsOf({ params }: Slot): PassphraseParams {
  const { kdf, m, t, p, salt } = params;
  const bytes = typeof salt === 'string' ? fromBase64Url(salt) : undefined;
  if (kdf !== 'argon2id' || typeof m !== 'number' || typeof t !== 'number' || typeof p !== 'number' || !bytes) {
    throw new KmsError('corrupt', 'the seal file does not say how its passphrase is used');
  }
  return { m, t, p, salt: bytes };
}

/** Rejects with the signal's reason once that is aborted, and ends the thread. */
export async function derivePassphrase(
  passphrase: string,
  { salt, ...cost }: PassphraseParams,
  signal?: AbortSignal,
): Promise<Uint8Array> {
  signal?.throwIfAborted();
  const worker = startWorker({ kind: 'passphrase', passphrase, salt, cost } satisfies PassphraseWork);
  const stopped = Promise.withResolvers<never>();
  const stop = (): void => stopped.reject(signal?.reason);
  signal?.addEventListener('abort', stop, { once: true });
  try {
    const derived = answerOf<Uint8Array | string>(worker, 'a passphrase').catch(() => undefined);
    const answer = await Promise.race([derived, stopped.promise]);
    if (answer instanceof Uint8Array) return answer;
    if (answer !== undefined) throw new KmsError('corrupt', answer);
    throw new KmsError('unavailable', 'the passphrase could not be tried: is there enough memory?');
  } finally {
    signal?.removeEventListener('abort', stop);
    await endThread(worker);
  }
}
