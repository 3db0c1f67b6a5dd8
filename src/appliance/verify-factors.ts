// SecondFactors follows through an export whose second factors were used for words: each belongs to one user, has one
// public key if it is a passkey, and signs for one verdict on one request.
import { isSignedChallenge, type KeptAssertion } from '../crypto/kept-assertion.ts';
import { isJsonObject, type JsonObject } from '../model/json.ts';
import { isWord } from './verify-statements.ts';

/** A second factor that gave a word, and its assertion, if it signed. */
export interface UsedFactor {
  readonly id: string;
  readonly assertion?: KeptAssertion;
}

const assertionFields = [
  'credentialId',
  'publicKey',
  'rpId',
  'origin',
  'clientDataJSON',
  'authenticatorData',
  'signature',
] as const satisfies readonly (keyof KeptAssertion)[];

export class SecondFactors {
  /** Public keys by the id of the factor. */
  readonly #keys = new Map<string, string>();
  /** Users by the ids of their factors, their public keys and their credentials. */
  readonly #owners = new Map<string, string>();

  /** Takes the factor of a record; returns it, or what is wrong with it. No challenge: it is not known. */
  see(user: string, { factor, assertion }: JsonObject, challenge: string | undefined): UsedFactor | string {
    const id = factorOf(factor);
    if (id === undefined) return 'gives a word without a second factor';
    if (assertion === undefined) return this.#own(user, { id });
    const isPasskey = Object(factor).kind === 'passkey';
    if (!isPasskey || !isAssertion(assertion)) return 'has an assertion that does not verify';
    const known = this.#keys.get(id) ?? assertion.publicKey;
    this.#keys.set(id, known);
    const isSigned = challenge === undefined || isSignedChallenge(assertion, challenge);
    if (known !== assertion.publicKey || !isSigned) return 'has an assertion that does not verify';
    return this.#own(user, { id, assertion });
  }

  #own(user: string, used: UsedFactor): UsedFactor | string {
    const marks = marksOf(used);
    for (const mark of marks) {
      const owner = this.#owners.get(mark) ?? user;
      if (owner !== user) return 'gives a word with the second factor of another user';
      this.#owners.set(mark, owner);
    }
    return used;
  }
}

/** Texts of which no two users have one in common. */
function marksOf({ id, assertion }: UsedFactor): readonly string[] {
  const own = `factor ${id}`;
  return assertion ? [own, `key ${assertion.publicKey}`, `credential ${assertion.credentialId}`] : [own];
}

function factorOf(factor: unknown): string | undefined {
  const { id, kind }: JsonObject = Object(factor);
  return isWord(id) && (kind === 'totp' || kind === 'passkey') ? id : undefined;
}

function isAssertion(value: unknown): value is KeptAssertion {
  return isJsonObject(value) && assertionFields.every((name) => typeof value[name] === 'string');
}
