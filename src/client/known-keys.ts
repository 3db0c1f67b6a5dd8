// The keys of rings that a program has unwrapped already, kept with the client that answered them: asked again, the
// appliance leaves their bytes out, and nothing is unwrapped twice. Which key a message gets the appliance still says
// each time, so that who may no longer ask gets nothing.
import { concatBytes, equalBytes } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import type { AnswerTo } from './methods.ts';
import { type RingPrivateKey, unwrapRingKey } from './ring-keys.ts';

interface Known {
  readonly ringname: string;
  /** Of the private keys with which it was opened: by others it is not known. */
  readonly opener: Uint8Array;
  readonly bytes: Uint8Array;
}

/** Of one client. */
const mostKept = 100;
/** An id is as long as a fifth of a wrapped key: of many, most would be named for nothing. */
const mostNamed = 4;

/** By id, the one used last at the end. */
const kept = new WeakMap<object, Map<string, Known>>();

/** What is known before the appliance is asked, as far as it is. */
interface Asked {
  readonly ringname?: string;
  readonly privateKeys?: readonly RingPrivateKey[];
}

interface KeyAnswer {
  readonly key: AnswerTo<'encrypt'>['key'];
  readonly ringname?: string;
}

interface Unwrapped<Answer> {
  readonly answer: Answer;
  /** The caller's own copy, to be wiped. */
  readonly bytes: Uint8Array;
}

/**
 * Asks with the ids that are worth naming, and unwraps what is not known. `ask` is called again, naming none, where a
 * key turns out to be known by another private key alone; where `asked` has the private keys, that cannot be.
 */
export async function askForKey<Answer extends KeyAnswer>(
  client: object,
  asked: Asked,
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
 * To be called where the key does not open what it was asked for: whoever may give a ring's key a new wrapping may give
 * a wrong one, and a later answer may have the right one again.
 */
export function forgetKey(client: object, id: string): void {
  const keys = kept.get(client);
  keys?.get(id)?.bytes.fill(0);
  keys?.delete(id);
}

/** Overwrites the keys that are kept with the client: it goes on as if it had asked for none. */
export function forgetKeys(client: object): void {
  for (const { bytes } of kept.get(client)?.values() ?? []) bytes.fill(0);
  kept.delete(client);
}

function openerOf(privateKeys: readonly RingPrivateKey[]): Uint8Array {
  return sha256(concatBytes(...privateKeys.map(({ bytes }) => bytes)));
}

/** The ids used last. */
function idsFor(keys: ReadonlyMap<string, Known>, { ringname, privateKeys }: Asked): string[] {
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
