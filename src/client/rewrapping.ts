// Rewrapping by the owner: opens a ring's earlier keys and seals their bytes to its present public key. Opening with
// the private key does not yet prove that the bytes are right: a caller who may configure the ring can store any bytes.
// Only the appliance's first wrapping is beyond doubt; without it, all wrappings that can be opened must agree.
import type { KeyListItem, KeyRing } from '../api/keyrings.ts';
import { equalBytes, fromBase64, toBase64 } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import { systemRandom } from '../crypto/random.ts';
import { kemOf, wrapRingKey } from '../crypto/ring-key.ts';
import { KmsError } from '../errors.ts';
import { mostRewrapped, mostRewraps } from '../model/kems.ts';
import { unexpected } from './failure.ts';
import type { Client, InputOf } from './methods.ts';
import { items, pages } from './pages.ts';
import { kemOfPublicKey, publicKeyBytes, publicKeyOf, type RingPrivateKey, unwrapRingKey } from './ring-keys.ts';

type NewWrapping = InputOf<'rewrapKeys'>['keys'][number];

interface Rewrapping {
  readonly client: Client;
  /** Its public key, which the caller knows to be the owner's. */
  readonly ring: Pick<KeyRing, 'id' | 'name' | 'publicKey'>;
  readonly privateKeys: readonly RingPrivateKey[];
  /** Reports the number of keys checked. */
  readonly progress: (keys: number) => Promise<void>;
}

interface Rewrapped {
  readonly rewrapped: number;
  /** Keys still not, or not correctly, wrapped to the ring's public key, because a private key is missing. */
  readonly left: number;
  /** Keys among `left` that have reached the limit of rewraps; absent if none. They are unchanged. */
  readonly full?: number;
}

/** Maximum of passes when another caller rewraps keys at the same time. */
const mostPasses = 10;

/**
 * Each request is atomic, so that an interrupted run can be resumed. Throws the appliance's errors, and `invalid` if
 * the public key is not hybrid, whatever the appliance calls it.
 */
export async function rewrapRing(work: Rewrapping): Promise<Rewrapped> {
  let rewrapped = 0;
  for (let pass = 1; ; pass++) {
    const made = await onePass(work);
    rewrapped += made.rewrapped;
    if (!made.collision) return { rewrapped, left: made.left, ...(made.full > 0 && { full: made.full }) };
    if (pass === mostPasses) throw made.collision;
  }
}

async function onePass({ client, ring, privateKeys, progress }: Rewrapping) {
  const to = publicKeyBytes(ring.publicKey);
  if (!to || kemOfPublicKey(ring.publicKey) !== 'mlkem768-x25519') {
    throw new KmsError('invalid', `the public key of the keyring ${ring.name} is not a hybrid one: nothing was sealed`);
  }
  const hasPresent = privateKeys.some((key) => publicKeyOf(key) === ring.publicKey);
  const made = { rewrapped: 0, left: 0, full: 0, collision: undefined as KmsError | undefined };
  let looked = 0;
  const listed = { ringname: ring.id, id: true, wrapped: true, limit: mostRewrapped } as const;
  for await (const { data } of pages(client.listKeys, listed)) {
    let keys: NewWrapping[] = [];
    for (const item of data) {
      const isPresent = item.publicKey === ring.publicKey;
      if (isPresent && (!item.earlier || !hasPresent)) continue;
      const { bytes, isRight, best } = await bytesOf(item, ring.publicKey, privateKeys);
      if (!bytes) made.left++;
      else if (best && (item.earlier?.length ?? 0) >= mostRewraps) {
        const { encrypted, iv } = best.keyData;
        keys.push(replacing(item, { wrapped: encrypted.key.value, iv }));
        if (best.publicKey !== ring.publicKey) {
          made.left++;
          made.full++;
        }
      } else if (!isPresent || !isRight) keys.push(wrapping(item, bytes, to));
      bytes?.fill(0);
    }
    while (keys.length > 0) {
      try {
        const answer = await client.rewrapKeys({ ringname: ring.name, publicKey: ring.publicKey, keys });
        made.rewrapped += answer.rewrapped;
        break;
      } catch (error) {
        const [field = ''] =
          error instanceof KmsError && error.code === 'invalid' ? Object.keys(error.fields ?? {}) : [];
        const [, index, what] = /^keys\.(\d+)\.(\w+)$/.exec(field) ?? [];
        if (!(error instanceof KmsError) || index === undefined) throw error;
        if (!keys[Number(index)]) throw unexpected(`it refused ${field}, which it was not given`);
        if (what === 'replaces') {
          made.collision = error;
          break;
        }
        // The other keys can continue without this one.
        keys = keys.filter((_, n) => n !== Number(index));
        made.left++;
        if (what === 'id') made.full++;
      }
    }
    looked += data.length;
    await progress(looked);
  }
  return made;
}

/** Whether a private key opens a key that the ring had before its present pair; undefined if it had none. */
export async function openEarlier(
  work: Pick<Rewrapping, 'client' | 'ring' | 'privateKeys'>,
): Promise<boolean | undefined> {
  const { client, ring, privateKeys } = work;
  let had = false;
  for await (const item of items(client.listKeys, {
    ringname: ring.id,
    id: true,
    wrapped: true,
    limit: mostRewrapped,
  })) {
    const { id, type, keyData } = item;
    const wrappings = [...earlierOf(item), { publicKey: item.publicKey, keyData }];
    if (wrappings[0]?.publicKey === ring.publicKey) continue;
    had = true;
    for (const { keyData } of wrappings) {
      const opening = keyData && unwrapRingKey({ privateKey: privateKeys, key: { id, type, keyData } });
      const bytes = await opening?.catch(nothingIfInvalid);
      bytes?.fill(0);
      if (bytes) return true;
    }
  }
  return had ? false : undefined;
}

interface Opened {
  /** Absent if no wrapping opens, or if those that open differ and the first is not among them. Wipe after use. */
  readonly bytes?: Uint8Array;
  /** Whether the present wrapping has these bytes. */
  readonly isRight: boolean;
  /** An earlier wrapping of these bytes that is better than the present one. */
  readonly best?: EarlierWrapping | undefined;
}

type EarlierWrapping = NonNullable<KeyListItem['earlier']>[number];

/** Bounded, since opening one takes a millisecond. */
function earlierOf({ earlier = [] }: KeyListItem): readonly EarlierWrapping[] {
  if (earlier.length > mostRewraps) throw unexpected(`${earlier.length} earlier wrappings of one key`);
  return earlier;
}

async function bytesOf(item: KeyListItem, publicKey: string, privateKeys: readonly RingPrivateKey[]): Promise<Opened> {
  const { id, type } = item;
  const earlier = earlierOf(item);
  const wrappings = [...earlier.map(({ keyData }) => keyData), ...(item.keyData ? [item.keyData] : [])];
  const opened: (Uint8Array | undefined)[] = [];
  for (const keyData of wrappings) {
    const opening = unwrapRingKey({ privateKey: privateKeys, key: { id, type, keyData } });
    opened.push(await opening.catch(nothingIfInvalid));
  }
  const [first] = opened;
  const known = opened.filter((bytes) => bytes !== undefined);
  const bytes = (first ?? known[0])?.slice();
  const agrees = (other: Uint8Array | undefined) => !!bytes && !!other && equalBytes(other, bytes);
  const isRight = agrees(opened.at(-1));
  const isSure = first !== undefined || known.every(agrees);
  const rank = (each: Pick<EarlierWrapping, 'publicKey'> & Pick<KeyListItem, 'keyData'>): number => {
    if (each.publicKey === publicKey) return 2;
    return kemOf(each.keyData?.encrypted.key.value ?? '') === 'x25519' ? 0 : 1;
  };
  let best: EarlierWrapping | undefined;
  let most = isRight ? rank(item) : -1;
  for (const [n, each] of earlier.entries()) {
    if (!agrees(opened[n]) || rank(each) <= most) continue;
    best = each;
    most = rank(each);
  }
  for (const each of known) each.fill(0);
  return bytes && isSure ? { bytes, isRight, best } : { isRight };
}

function nothingIfInvalid(error: unknown): undefined {
  if (!(error instanceof KmsError) || error.code !== 'invalid') throw error;
}

function wrapping(item: KeyListItem, bytes: Uint8Array, to: Uint8Array): NewWrapping {
  return replacing(item, wrapRingKey('ks', to, item.id, bytes, systemRandom));
}

function replacing({ id, keyData }: KeyListItem, { wrapped, iv }: Pick<NewWrapping, 'wrapped' | 'iv'>): NewWrapping {
  const before = fromBase64(keyData?.encrypted.key.value ?? '') ?? new Uint8Array();
  return { id, wrapped, iv, replaces: toBase64(sha256(before)) };
}
