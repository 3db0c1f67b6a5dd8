// From a passphrase to the secret of its custodian, on a thread of its own: it takes about a second and all of a core.
import { once } from 'node:events';
import { fromBase64Url, toBase64Url } from '../../crypto/encoding.ts';
import { type PassphraseCost, passphraseSaltLength } from '../../crypto/passphrase.ts';
import { systemRandom } from '../../crypto/random.ts';
import { KmsError } from '../../errors.ts';
import type { Slot } from '../../seal/slot.ts';
import { startWorker } from '../runtime.ts';
import type { PassphraseWork } from '../worker-jobs.ts';

/** What the slot of a passphrase keeps, so that the same secret can be made again when the cost of new ones has changed. */
export interface PassphraseParams extends PassphraseCost {
  readonly salt: Uint8Array;
}

export function newPassphraseParams(cost: PassphraseCost): PassphraseParams {
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

export async function derivePassphrase(passphrase: string, { salt, ...cost }: PassphraseParams): Promise<Uint8Array> {
  const worker = startWorker({ kind: 'passphrase', passphrase, salt, cost } satisfies PassphraseWork);
  try {
    const ended = once(worker, 'exit').then(() => undefined);
    const [answer] = (await Promise.race([once(worker, 'message'), ended])) ?? [];
    if (answer instanceof Uint8Array) return answer;
    throw new KmsError(
      typeof answer === 'string' ? 'corrupt' : 'unavailable',
      typeof answer === 'string' ? answer : 'the passphrase could not be tried: is there enough memory?',
    );
  } finally {
    await worker.terminate();
  }
}
