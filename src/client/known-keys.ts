// Cache of unwrapped ring keys, kept with the client that received them: the appliance then omits their wrapped bytes,
// and no key is unwrapped twice. The appliance still chooses the key of each message, so that a caller whose permission
// was revoked gets nothing.
import { concatBytes, equalBytes } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import type { AnswerTo } from './methods.ts';
import { type RingPrivateKey, unwrapRingKey } from './ring-keys.ts';

interface Known {
  readonly ringname: string;
  /** Hash of the private keys that opened it; for other private keys it does not count as known. */
  readonly opener: Uint8Array;
  readonly bytes: Uint8Array;
}

/** Cache entries per client. */
const mostKept = 100;
/** An id is a fifth as long as a wrapped key: naming many would cost more than it saves. */
const mostNamed = 4;

/** Keys by id, least recently used first. */
const kept = new WeakMap<object, Map<string, Known>>();

/** Parts known before asking the appliance, if any. */
interface KeyRequest {
  readonly ringname?: string;
  readonly privateKeys?: readonly RingPrivateKey[];
}

interface KeyAnswer {
  readonly key: AnswerTo<'encrypt'>['key'];
  readonly ringname?: string;
}

interface Unwrapped<Answer> {
  readonly answer: Answer;
  /** The caller's own copy; wipe it. */
  readonly bytes: Uint8Array;
}

/**
 * Asks with the ids worth naming, and unwraps the key if it is not known. If the key turns out to be known only by
 * another private key, `ask` is called again without naming any; that cannot happen if `asked` has the private keys.
 */
export async function askForKey<Answer extends KeyAnswer>(
  client: object,
  asked: KeyRequest,
  ask: (known: { readonly knownKeys?: string[] }) => Promise<Answer>,
  privateKeysOf: (answer: Answer) => readonly RingPrivateKey[] | Promise<readonly RingPrivateKey[]>,
): Promise<Unwrapped<Answer>> {
  const keys = kept.get(client) ?? new Map<string, Known>();
  kept.set(client, keys);
  const named = idsFor(keys, asked);
  let answer = await ask(named.length > 0 ? { knownKeys: named } : {});
  const privateKeys = await privateKeysOf(answer);
  const opener = openerOf(privateKeys);
  const known = keys.get(answer.key.id);
  if (known && equalBytes(known.opener, opener)) {
    keys.delete(answer.key.id);
    keys.set(answer.key.id, known);
    return { answer, bytes: known.bytes.slice() };
  }
  if (!answer.key.keyData) answer = await ask({});
  const bytes = await unwrapRingKey({ privateKey: privateKeys, key: answer.key });
  keep(keys, answer.key.id, {
    ringname: (asked.ringname ?? answer.ringname ?? '').toLowerCase(),
    opener,
    bytes: bytes.slice(),
  });
  return { answer, bytes };
}

/**
 * Call this if the key does not open what it should: a caller allowed to rewrap a ring's key may store a wrong
 * wrapping, and a later answer may have the right one again.
 */
export function forgetKey(client: object, id: string): void {
  const keys = kept.get(client);
  keys?.get(id)?.bytes.fill(0);
  keys?.delete(id);
}

/** Overwrites and drops all keys kept with the client. */
export function forgetKeys(client: object): void {
  for (const { bytes } of kept.get(client)?.values() ?? []) bytes.fill(0);
  kept.delete(client);
}

function openerOf(privateKeys: readonly RingPrivateKey[]): Uint8Array {
  return sha256(concatBytes(...privateKeys.map(({ bytes }) => bytes)));
}

/** The most recently used ids. */
function idsFor(keys: ReadonlyMap<string, Known>, { ringname, privateKeys }: KeyRequest): string[] {
  const opener = privateKeys && openerOf(privateKeys);
  const isCandidate = (known: Known): boolean =>
    (ringname === undefined || known.ringname === ringname.toLowerCase()) &&
    (opener === undefined || equalBytes(known.opener, opener));
  const ids = [...keys].filter(([, known]) => isCandidate(known)).map(([id]) => id);
  return ids.slice(-mostNamed);
}

function keep(keys: Map<string, Known>, id: string, known: Known): void {
  keys.get(id)?.bytes.fill(0);
  keys.delete(id);
  keys.set(id, known);
  const [oldest] = keys.keys();
  if (keys.size <= mostKept || oldest === undefined) return;
  keys.get(oldest)?.bytes.fill(0);
  keys.delete(oldest);
}
