// Opens the seal in a backup or a shipped copy with the master key, found where `serve` would find it. Nothing is changed.
import { systemRandom } from '../../crypto/random.ts';
import { parseHeader } from '../../seal/header.ts';
import { openSeal, type Seal } from '../../seal/seal.ts';
import { findKeyFile, keyPlaces } from '../key-place.ts';

export interface KeyOptions {
  /** The data directory beside which the key file may lie. */
  readonly data: string;
  readonly keyFile?: string | undefined;
}

export interface Unsealed {
  readonly seal: Seal;
  /** The key file. */
  readonly place: string;
}

/** Throws `sealed` where no key is found, `refused` for a wrong one: "needs …, got …". */
export async function unseal(bytes: Uint8Array, name: string, { data, keyFile }: KeyOptions): Promise<Unsealed> {
  const { header } = parseHeader(bytes, name);
  const { secret, place } = await findKeyFile(keyPlaces(data, keyFile, header.slots));
  try {
    return { seal: openSeal(bytes, secret, systemRandom, name), place };
  } finally {
    secret.fill(0);
  }
}
