// Plan for each transit key of a Vault or OpenBao: the type and the options that it gets here, or the reason why it
// cannot come.
import { KmsError } from '../errors.ts';
import { ageText } from '../model/ages.ts';
import { isCipher, type KeyType, keyTypeFacts, keyTypes } from '../model/key-types.ts';
import { isRingName, reservedKeyNames } from '../model/names.ts';
import { isSourceName, isTemporary, type SourceKey } from './vault-source.ts';

/** Whether a key came over, would come (dry run), was here before, cannot come, or failed on its way. */
type Result = 'imported' | 'planned' | 'present' | 'unsupported' | 'failed';

/** One key of the source, and what becomes of it. */
export interface Outcome {
  readonly name: string;
  /** Type here, or at the source if there is no such type here. */
  readonly type: string;
  /** Number of versions; 0 if unknown. */
  readonly versions: number;
  readonly result: Result;
  /** The reason, or options that come with the key. */
  readonly note: string;
}

/** A key that can come. */
export interface Candidate {
  readonly key: SourceKey;
  readonly type: KeyType;
  readonly encrypts: boolean;
}

interface Wishes {
  /** RSA keys that encrypt here, by name. */
  readonly encrypts: readonly string[];
  readonly lowersMinDecrypt: boolean;
}

/** Why no key of this name can be here, or is to come; undefined if one can. */
export function nameProblem(name: string): string | undefined {
  if (isTemporary(name)) return 'left behind by an import that was cut off; it holds no secret, delete it there';
  if (!isSourceName(name)) return 'no name that a transit engine gives';
  if (!isRingName(name)) return 'no key can have this name here: it begins with no letter or digit';
  if (reservedKeyNames.has(name.toLowerCase()))
    return 'no key can have this name here: the appliance keeps it for itself';
  return undefined;
}

/** The key as it would come. Throws `refused` with the reason why it cannot. */
export function candidateOf(key: SourceKey, { encrypts: encrypting, lowersMinDecrypt }: Wishes): Candidate {
  const type = typeHere(key);
  if (type === undefined) throw cannot(`keys of the type ${key.type} are not supported here`, key);
  if (key.isConvergent) throw cannot('convergent encryption is not supported here', key);
  if (key.isDerived && !isCipher(type))
    throw cannot(`derived keys of the type ${key.type} are not supported here`, key);
  if (key.isSoftDeleted) throw new KmsError('refused', 'softly deleted there: restore it first');
  if (!key.isExportable) throw cannot('not exportable: set exportable=true in its config there, or', key, ' ');
  if (key.minAvailableVersion > 1) {
    const first = key.minAvailableVersion;
    throw cannot(`versions before ${first} were trimmed there, and the numbers of versions must agree`, key);
  }
  if (key.minDecryptVersion > 1 && !lowersMinDecrypt) {
    const before = `versions before ${key.minDecryptVersion} do not decrypt there, so they are not exported`;
    throw new KmsError('refused', `${before}: add --lower-min-decryption`);
  }
  return { key, type, encrypts: keyTypeFacts[type].form === 'pkcs8' && encrypting.includes(key.name) };
}

/** Undefined if there is no such type here. */
export function typeHere({ type, parameterSet }: SourceKey): KeyType | undefined {
  return keyTypes.find((each) => {
    const { vault } = keyTypeFacts[each];
    return vault?.type === type && vault.isShownOnly !== true && vault.parameterSet === parameterSet;
  });
}

function cannot(reason: string, { type }: SourceKey, separator = ': '): KmsError {
  const opens = /^(?:x?chacha|aes\d+-gcm|rsa-)/.test(type);
  const instead = opens ? 'let the source decrypt, and encrypt here again' : 'make a new key here';
  return new KmsError('refused', `${reason}${separator}${instead}`);
}

/** Options that come with the key, as a note. */
export function optionsText({ key, type, encrypts }: Candidate): string {
  const isRsa = keyTypeFacts[type].form === 'pkcs8';
  return [
    ...(isRsa ? [encrypts ? 'encrypts, and signs no more' : 'signs, and encrypts no more'] : []),
    ...(key.isDerived ? ['derived'] : []),
    ...(key.minDecryptVersion > 1 ? [`decrypts from version ${key.minDecryptVersion}`] : []),
    ...(key.minEncryptVersion > 0 ? [`encrypts from version ${key.minEncryptVersion}`] : []),
    ...(key.rotateAfter > 0 ? [`rotated every ${ageText(key.rotateAfter * 1000)}`] : []),
    ...(key.isDeletionAllowed ? ['may be deleted'] : []),
  ].join(', ');
}
