// Managed keys as the console tells of them: what their types are for, what their states allow, and who used them how.
import type { Dependent, ManagedKey } from '../../api/managed-keys.ts';
import type { KeyState } from '../../model/key-states.ts';
import { type KeyType, type KeyUse, keyTypeFacts, keyTypes } from '../../model/key-types.ts';
import type { KmipType } from '../../model/kmip-types.ts';
import { epochTimeOf } from '../../model/timestamp.ts';

/** Purposes of new keys, in the order in which they are offered. */
export const keyPurposes = [
  { value: 'encrypt', label: 'Encrypt', hint: 'Encrypts messages and decrypts them again.' },
  { value: 'sign', label: 'Sign', hint: 'Signs messages; the public key verifies the signatures.' },
  { value: 'mac', label: 'MAC', hint: 'Makes codes (HMAC) that only this key can make and verify.' },
  { value: 'derive', label: 'Agree on secrets', hint: 'Derives the secret that it shares with a public key (ECDH).' },
  { value: 'secret', label: 'Keep a secret', hint: 'Bytes that programs store here and get back.' },
] as const;
export type KeyPurpose = (typeof keyPurposes)[number]['value'];

/** Types for a purpose, with the uses that a key of the type then can have. */
export function typesFor(purpose: KeyPurpose): readonly KeyType[] {
  return keyTypes.filter((type) => usesFor(purpose, type) !== undefined);
}

interface Uses {
  readonly usual: readonly KeyUse[];
  readonly possible: readonly KeyUse[];
}

/** Uses of a key of that type made for the purpose; undefined if there are no such keys. */
export function usesFor(purpose: KeyPurpose, type: KeyType): Uses | undefined {
  const first: KeyUse = purpose === 'secret' ? 'export' : purpose;
  return keyTypeFacts[type].purposes.find(({ usual }) => usual[0] === first);
}

const usualTypes: Readonly<Record<KeyPurpose, KeyType>> = {
  encrypt: 'aes256-gcm',
  sign: 'ed25519',
  mac: 'hmac-sha256',
  derive: 'ecdsa-p256',
  secret: 'secret',
};

/** The type that is offered first for the purpose. */
export function usualType(purpose: KeyPurpose): KeyType {
  return usualTypes[purpose];
}

const useLabels: Readonly<Record<KeyUse, string>> = {
  encrypt: 'Encrypt',
  decrypt: 'Decrypt',
  sign: 'Sign',
  verify: 'Verify',
  mac: 'Make MACs',
  wrap: 'Wrap keys',
  unwrap: 'Unwrap keys',
  derive: 'Derive',
  export: 'Export',
};

export function useText(use: KeyUse): string {
  return useLabels[use];
}

/** Verbs for the two minimum versions; undefined for keys whose versions are not named in what they make. */
export function versionWords(uses: readonly KeyUse[]): { readonly reads: string; readonly makes: string } | undefined {
  const has = (...some: readonly KeyUse[]): boolean => some.some((use) => uses.includes(use));
  if (has('encrypt', 'decrypt')) return { reads: 'Decrypts', makes: 'Encrypts' };
  if (has('sign')) return { reads: 'Verifies', makes: 'Signs' };
  if (has('mac')) return { reads: 'Verifies', makes: 'Makes MACs' };
  if (has('verify')) return { reads: 'Verifies', makes: 'Signs' };
  return has('wrap', 'unwrap') ? { reads: 'Unwraps', makes: 'Wraps' } : undefined;
}

/** The effect of a rotation on a key that is for these uses. */
export function rotationText(uses: readonly KeyUse[]): string {
  const words = versionWords(uses);
  if (words === undefined) return 'It gets a new version. The versions before stay.';
  const [makes, made] = rotationWords[words.makes] ?? ['does the work', 'made'];
  return `It gets a new version, which ${makes} from now on. What was ${made} before can still be ${readText(words)}.`;
}

/** `decrypted`, `verified` or `unwrapped`. */
export function readText({ reads }: { readonly reads: string }): string {
  return reads === 'Unwraps' ? 'unwrapped' : reads === 'Verifies' ? 'verified' : 'decrypted';
}

const rotationWords: Readonly<Record<string, readonly [makes: string, made: string]>> = {
  Encrypts: ['encrypts', 'encrypted'],
  Signs: ['signs', 'signed'],
  'Makes MACs': ['makes MACs', 'given a MAC'],
  Wraps: ['wraps keys', 'wrapped'],
};

interface StateWords {
  readonly label: string;
  readonly tone?: 'good' | 'warn' | 'bad';
  /** The use that a key in the state can still be put to. */
  readonly means: string;
}

const states: Readonly<Record<KeyState, StateWords>> = {
  'pre-active': { label: 'not active yet', means: 'It does nothing until it is activated.' },
  active: { label: 'active', tone: 'good', means: 'It does everything that it is for.' },
  suspended: { label: 'suspended', tone: 'warn', means: 'It does nothing until it is resumed.' },
  deactivated: {
    label: 'deactivated',
    tone: 'warn',
    means: 'It makes nothing new, but still decrypts, unwraps and verifies. It never becomes active again.',
  },
  compromised: {
    label: 'compromised',
    tone: 'bad',
    means:
      'It makes nothing new. What it still decrypts, unwraps and verifies comes with a warning, since others may have made it. It never becomes active again.',
  },
  'pending-deletion': { label: 'pending deletion', tone: 'bad', means: 'It does nothing, and will be destroyed.' },
  destroyed: { label: 'destroyed', tone: 'bad', means: 'Its keys are erased. Only what is known about it is kept.' },
};

export function stateWords(state: KeyState): StateWords {
  return states[state];
}

export const aliasRule =
  'Letters, digits, dots, dashes, underscores and slashes; up to 128 characters, the first a letter or digit.';

/** Why a key cannot be deleted, and what to do about it. */
export const deletionHindrance = 'Its deletion is not allowed. Tick “May be deleted” in its settings first.';

const dialects: ReadonlyMap<string, string> = new Map([
  ['native', 'this service’s own API'],
  ['vault', 'Vault'],
  ['vault-transit', 'Vault'],
  ['aws', 'AWS KMS'],
  ['kmip', 'KMIP'],
]);

/** The interface that a caller spoke. */
export function dialectText(dialect: string): string {
  return dialects.get(dialect) ?? dialect;
}

/** A type of KMIP's objects: `symmetric key`. */
export function kmipTypeText(type: KmipType): string {
  return type.replace('-', ' ');
}

/** An object of KMIP: its type and names, and the API key that made it. */
export function kmipText({ type, names, owner }: NonNullable<ManagedKey['kmip']>): string {
  const named = names.length === 0 ? '' : ` ${names.map((name) => `“${name}”`).join(', ')}`;
  return `${kmipTypeText(type)}${named}${owner === undefined ? '' : ` of ${owner}`}`;
}

const operations: ReadonlyMap<string, string> = new Map([
  ['encrypt', 'encrypting'],
  ['decrypt', 'decrypting'],
  ['rewrap', 'rewrapping'],
  ['datakey', 'data keys'],
  ['datakey-wrapped', 'encrypted data keys'],
  ['sign', 'signing'],
  ['verify', 'verifying'],
  ['mac', 'MACs'],
  ['wrap', 'wrapping keys'],
  ['unwrap', 'unwrapping keys'],
  ['derive', 'deriving'],
  ['export', 'exporting'],
]);

export function operationText(operation: string): string {
  return operations.get(operation) ?? operation;
}

/** Callers that used one of the versions from `first` up to but not `end`, each with its latest use of them. */
export function callersOf(dependents: readonly Dependent[], first: number, end: number): readonly Dependent[] {
  return latestUses(dependents.filter(({ version }) => version >= first && version < end));
}

const day = 24 * 60 * 60 * 1000;

/** Callers that used the key in the last 24 hours, each with its latest use. */
export function recentCallers(dependents: readonly Dependent[], now: number): readonly Dependent[] {
  return latestUses(dependents.filter(({ lastUsedAt }) => now - epochTimeOf(lastUsedAt) < day));
}

/** The latest use of each caller, the most recent first. */
function latestUses(dependents: readonly Dependent[]): readonly Dependent[] {
  const latest = new Map<string, Dependent>();
  for (const each of dependents) {
    const known = latest.get(each.caller);
    if (known === undefined || known.lastUsedAt < each.lastUsedAt) latest.set(each.caller, each);
  }
  return [...latest.values()].sort((one, other) => other.lastUsedAt.localeCompare(one.lastUsedAt));
}
