// A managed key in use by one request: which of its versions does the work, whether key and version may, and how the
// use is counted. Its keys are looked up and opened for each message; the store and the tenant's keys cache them.
// Errors are worded like those of Vault's transit engine, since programs match on them.
import { readPrefixed } from '../crypto/managed/messages.ts';
import { KmsError } from '../errors.ts';
import { useProblem, useWarning } from '../model/key-states.ts';
import { isPublicUse, type KeyUse, keyTypeFacts, messagesPerVersion } from '../model/key-types.ts';
import type { KeyVersion } from '../store/tables/managed-key-versions.ts';
import type { ManagedKey } from '../store/tables/managed-keys.ts';
import type { Context } from './context.ts';
import { countUse } from './key-dependents.ts';
import { nextVersion, openVersion, publicKeyOfVersion } from './key-versions.ts';
import type { KeyWork } from './key-work.ts';
import { hasOneValue } from './kmip-names.ts';
import { findManagedKey, mustFind, type NamedKey, stateOf } from './managed-keys.ts';

export function refusal(message: string): KmsError {
  return new KmsError('invalid', message);
}

/** Vault's words for the uses. */
const works: Partial<Record<KeyUse, string>> = {
  encrypt: 'encryption',
  decrypt: 'decryption',
  sign: 'signing',
  verify: 'verification',
  mac: 'HMAC creation',
};

/** The operation of the authority for client certificates, whose key does nothing else. */
export const issuesCertificates = 'issue';

const protects: ReadonlySet<KeyUse> = new Set(['encrypt', 'sign', 'mac', 'wrap', 'derive']);

/** Why a key is not for this use at all; undefined if it is. */
function unsupported({ type, uses }: ManagedKey, use: KeyUse): string | undefined {
  if (uses.includes(use)) return undefined;
  const name = keyTypeFacts[type].vault?.type ?? type;
  const work = works[use];
  const isPossible = keyTypeFacts[type].purposes.some(({ possible }) => possible.includes(use));
  if (isPossible || work === undefined) return `the key is not for ${use}: it is for ${uses.join(', ')}`;
  if (use === 'encrypt' || use === 'decrypt') return `message ${work} not supported for key type ${name}`;
  return `key type ${name} does not support ${work}`;
}

/** Versions that something is compared with that does not say which one made it. */
const mostCompared = 5;

export class KeyInUse {
  key: ManagedKey;
  readonly ctx: Context;
  readonly work: KeyWork;
  readonly #use: KeyUse;
  /** Name under which it is counted. */
  readonly #operation: string;

  /** Throws `not-found`, `invalid` for what the key is not for, and `conflict` if its state does not allow it. */
  constructor(ctx: Context, { key: ref }: NamedKey, use: KeyUse, work: KeyWork, operation: string = use) {
    const key = findManagedKey(ctx.tx, ref);
    const state = stateOf(ctx, key);
    const problem = useProblem(use, { key: state });
    if (problem !== undefined) throw new KmsError('conflict', problem);
    if (use === 'sign' && operation !== issuesCertificates && ctx.tx.clientAuthorities.hasKey(key.id)) {
      throw refusal('the key is the authority for client certificates, and signs nothing else');
    }
    const other = unsupported(key, use);
    if (other !== undefined) throw refusal(other);
    this.key = key;
    this.ctx = ctx;
    this.work = work;
    this.#use = use;
    this.#operation = operation;
  }

  get type() {
    return this.key.type;
  }

  /** The version for something new. 0 means the primary one, which is replaced if it is too old. */
  toMake(wanted: number, what: 'encryption' | 'signing' = 'encryption'): KeyVersion {
    const { latestVersion, minEncryptVersion, minDecryptVersion, id } = this.key;
    if (wanted < 0) throw refusal(`requested version for ${what} is negative`);
    if (wanted > latestVersion) throw refusal(`requested version for ${what} is higher than the latest key version`);
    if (wanted > 0 && wanted < Math.max(minEncryptVersion, minDecryptVersion)) {
      throw refusal(`requested version for ${what} is less than the minimum encryption key version`);
    }
    const { keyVersions } = this.ctx.tx;
    const primary = wanted === 0 ? keyVersions.newestActive(id) : wanted;
    if (primary === undefined) throw refusal('no version of the key is active: rotate it, or activate one');
    if (primary < minEncryptVersion || primary < minDecryptVersion) {
      throw refusal('no version of the key that may protect anything new is active');
    }
    const stored = this.version(primary, this.#use);
    const isCounted = this.#use === 'encrypt' && !keyTypeFacts[this.type].isAsymmetric;
    const isSpent = isCounted && keyVersions.messageCount(stored.id) >= messagesPerVersion;
    if (isSpent && (wanted !== 0 || hasOneValue(this.ctx.tx, id)))
      throw refusal(`version ${primary} has made all the messages that it may`);
    const made = isSpent || (wanted === 0 && this.#isOld(stored)) ? this.#rotated() : stored;
    if (isCounted) keyVersions.countMessage(made.id);
    return made;
  }

  /** Version and bytes of a message whose version may still be read. Throws `invalid`. */
  read(text: string, what: 'ciphertext' | 'signature' | 'HMAC') {
    const read = readPrefixed(text, what);
    if ('problem' in read) throw refusal(read.problem);
    if (read.version > this.key.latestVersion) throw refusal(`invalid ${what}: version is too new`);
    if (read.version < this.key.minDecryptVersion) {
      if (what === 'HMAC') throw refusal('cannot verify HMAC: version is too old (disallowed by policy)');
      throw refusal('ciphertext or signature version is disallowed by policy (too old)');
    }
    return read;
  }

  /** The version that made something, for work on that. */
  toRead(version: number, use: KeyUse = this.#use): KeyVersion {
    return this.version(version, use);
  }

  /** The newest versions for work on something that does not say which one made it, those that may not left out. */
  *newestReadable(): Generator<KeyVersion> {
    const { latestVersion, minDecryptVersion } = this.key;
    const oldest = Math.max(1, minDecryptVersion, latestVersion - mostCompared + 1);
    for (let version = latestVersion; version >= oldest; version--) {
      const stored = this.#ifReadable(version);
      if (stored) yield stored;
    }
  }

  /** Undefined if its state does not allow the use, or its key is gone. */
  #ifReadable(version: number): KeyVersion | undefined {
    const stored = this.ctx.tx.keyVersions.get(this.key.id, version);
    if (!stored || (stored.sealed === '' && !isPublicUse(this.type, this.#use))) return undefined;
    const problem = useProblem(this.#use, { key: stateOf(this.ctx, this.key), version: stored.state });
    return problem === undefined ? stored : undefined;
  }

  version(version: number, use: KeyUse): KeyVersion {
    const { tx } = this.ctx;
    const stored = tx.keyVersions.get(this.key.id, version);
    if (!stored) throw new KmsError('corrupt', 'a version of a stored managed key is not there');
    const problem = useProblem(use, { key: stateOf(this.ctx, this.key), version: stored.state });
    if (problem !== undefined) throw refusal(problem);
    if (stored.sealed === '' && !isPublicUse(this.type, use)) {
      throw refusal('only the public key of this version is here');
    }
    return stored;
  }

  /** A warning to give with a result of work on something old. */
  warning(version: KeyVersion): { readonly warning?: string } {
    const warning = useWarning(this.#use, { key: stateOf(this.ctx, this.key), version: version.state });
    return warning === undefined ? {} : { warning };
  }

  /** Use it at once: the tenant's keys own the buffer. */
  opened(stored: KeyVersion): Uint8Array {
    return openVersion(this.ctx.tenant.keys, this.type, stored);
  }

  /** SPKI DER. */
  publicKey(stored: KeyVersion): Uint8Array {
    const spki = publicKeyOfVersion(this.type, stored);
    if (spki) return spki;
    throw new KmsError('internal', 'expected a key that has a public key');
  }

  /** Counts a use that came to something: those of a caller whose messages never open do not depend on the key. */
  count(version: number): void {
    countUse(this.ctx, this.key, version, this.#operation);
  }

  #rotated(): KeyVersion {
    const stored = nextVersion(this.ctx, this.key, this.work);
    this.key = mustFind(this.ctx.tx, this.key.id);
    return stored;
  }

  #isOld({ createdAt }: KeyVersion): boolean {
    const { id, rotateAfter } = this.key;
    if (rotateAfter === undefined || this.ctx.world.now() - createdAt < rotateAfter * 1000) return false;
    return !hasOneValue(this.ctx.tx, id);
  }

  /** Whether the use protects something new. */
  get isProtecting(): boolean {
    return protects.has(this.#use);
  }
}
