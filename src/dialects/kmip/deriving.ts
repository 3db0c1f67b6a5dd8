// Derive Key: a new object whose value comes from another object's.
import { type KmipObject, materialOfObject, needMaking } from '../../core/kmip-objects.ts';
import { blockEncrypt, ivLengths } from '../../crypto/managed/block-modes.ts';
import { counterKey, type DerivingHash, hashKey, hashLengths, hmacKey } from '../../crypto/managed/derivation.ts';
import { type AttributeSet, flagIn, numberIn, readAttributes } from './attributes.ts';
import { cipherOf, cryptographic, dataOf } from './cryptography.ts';
import { formats, hashes, objectTypes, usages } from './enumerations.ts';
import { symmetricKey } from './key-values.ts';
import { givenSet, linkDerived, makeObject } from './making.ts';
import { attributesOf, madeShape } from './objects.ts';
import { idAnswer, type Operation, type Work } from './operation.ts';
import { Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import { boolean, fieldOf, integer, one, type Structure, structureIn } from './ttlv.ts';
import { takeUsage } from './usage-limits.ts';
import { keyInUse } from './uses.ts';

const methods = { password: 1, hash: 2, hmac: 3, encrypt: 4, counter: 5 } as const;

const longestDerived = 4096;
/** Bytes that a round of a hash takes, as rounds are counted. */
const roundBytes = 64;
/** Data that counter mode hashes for each block in place: some milliseconds for the longest key. */
const shortData = 1024;

export const deriveKey: Operation = {
  code: 0x05,
  name: 'Derive Key',
  since: 10,
  action: 'key.derive',
  isCostly(payload) {
    const method = fieldOf(payload, tags.derivationMethod, 'enumeration');
    return method === methods.password || (method === methods.counter && dataIn(payload).length > shortData);
  },
  run(work, payload) {
    needMaking(work.ctx);
    const objectType = fieldOf(payload, tags.objectType, 'enumeration');
    const base = work.find(payload, 'derive');
    const use = keyInUse(work, base, { use: 'derive', right: 'derive', mask: usages.derive, protects: true });
    if (objectType !== objectTypes.symmetricKey && objectType !== objectTypes.secretData) {
      throw new Refusal(reasons.invalidField, 'only symmetric keys and secret data are derived');
    }
    const given = givenSet(
      readAttributes(work.version, payload, tags.templateAttribute, tags.attributes),
      work.version,
    );
    const bits = numberIn(given, 'Cryptographic Length');
    if (bits === undefined || bits < 8 || bits % 8 !== 0 || bits / 8 > longestDerived) {
      throw new Refusal(reasons.invalidField, 'expected a Cryptographic Length of whole bytes');
    }
    const stored = use.toMake(0);
    const key = materialOfObject(work.ctx, base);
    takeUsage(work, base, Math.max(bits / 8, dataIn(payload).length));
    const bytes = derived(work, base, key, payload, bits / 8);
    use.count(stored.version);
    try {
      const algorithm = numberIn(given, 'Cryptographic Algorithm');
      const kept =
        objectType === objectTypes.secretData
          ? { type: 'secret' as const, key: bytes }
          : symmetricKey(algorithm, bytes);
      const format = objectType === objectTypes.secretData ? formats.opaque : formats.raw;
      const set = asSecret(base, given);
      const shape = madeShape(objectType, format, algorithm, bits);
      const made = makeObject(work, {
        ...{ objectType, kept, shape, set, format },
        ...{ form: 'key', digested: bytes, isMade: true },
      });
      linkDerived(work, base, made);
      return idAnswer(made);
    } finally {
      key.fill(0);
      bytes.fill(0);
    }
  },
};

/** The attributes of a new key. What is derived of a key leaves no more easily than that key itself. */
function asSecret(base: KmipObject, given: AttributeSet): AttributeSet {
  const value = tags.attributeValue;
  const hasMask = given.first('Cryptographic Usage Mask') !== undefined;
  const masked = hasMask ? given : given.withOne('Cryptographic Usage Mask', integer(value, 0));
  const kept = base.key.exportable ? masked : masked.withOne('Extractable', boolean(value, false));
  return flagIn(attributesOf(base), 'Sensitive') ? kept.withOne('Sensitive', boolean(value, true)) : kept;
}

function derived(work: Work, base: KmipObject, key: Uint8Array, payload: Structure, length: number): Uint8Array {
  const from = structureIn(payload, tags.derivationParameters);
  const parameters = structureIn(from, tags.cryptographicParameters);
  const data = dataIn(payload);
  const made = derivedBytes(
    work,
    base,
    { key, data, from, parameters, length },
    fieldOf(payload, tags.derivationMethod, 'enumeration'),
  );
  if (made.length < length)
    throw new Refusal(reasons.cryptographicFailure, 'fewer bytes are derived than the key needs');
  return made.slice(0, length);
}

function dataIn(payload: Structure): Uint8Array {
  return dataOf(structureIn(payload, tags.derivationParameters), tags.derivationData);
}

interface Derivation {
  readonly key: Uint8Array;
  readonly data: Uint8Array;
  readonly from: Structure | undefined;
  readonly parameters: Structure | undefined;
  readonly length: number;
}

function derivedBytes(
  work: Work,
  base: KmipObject,
  { key, data, from, parameters, length }: Derivation,
  method: number | undefined,
): Uint8Array {
  switch (method) {
    case methods.password: {
      const iterations = fieldOf(from, tags.iterationCount, 'integer');
      if (!from || !one(from, tags.salt) || iterations === undefined)
        throw new Refusal(reasons.missingData, 'the salt or iteration count is missing');
      if (iterations < 1) throw new Refusal(reasons.invalidField, 'expected 1 iteration or more');
      const salt = dataOf(from, tags.salt);
      const hash = hashOf(parameters, 'sha1');
      spendRounds(work, hash, length, iterations + Math.floor(salt.length / roundBytes));
      return work.keys.run('passwordKey', { hash, key, salt, iterations, length });
    }
    case methods.hash:
      return hashKey(hashOf(parameters), data.length > 0 ? data : key);
    case methods.hmac:
      return hmacKey(hashOf(parameters), key, data);
    case methods.encrypt: {
      const cipher = cipherOf(base.key.type, parameters);
      const given = fieldOf(from, tags.initializationVector, 'bytes') ?? fieldOf(from, tags.ivCounterNonce, 'bytes');
      const iv = given ?? new Uint8Array(ivLengths[cipher.mode]);
      return cryptographic(() => blockEncrypt({ ...cipher, key, iv, associated: new Uint8Array() }, data)).bytes;
    }
    case methods.counter: {
      const derivation = { hash: hashOf(parameters), key, fixed: data, length };
      spendRounds(work, derivation.hash, length, 1 + Math.floor(data.length / roundBytes));
      return data.length > shortData ? work.keys.run('counterKey', derivation) : counterKey(derivation);
    }
    default:
      throw new Refusal(reasons.invalidField, 'keys are not derived by this method here');
  }
}

/** Counts so many rounds for each block of the hash that the key has. Throws `Refusal`. */
function spendRounds({ effort }: Work, hash: DerivingHash, length: number, rounds: number): void {
  effort.spend('rounds', rounds * Math.ceil(length / hashLengths[hash]));
}

function hashOf(parameters: Structure | undefined, usual?: DerivingHash): DerivingHash {
  const number = fieldOf(parameters, tags.hashingAlgorithm, 'enumeration');
  const hash = number === undefined ? usual : hashes[number];
  if (hash) return hash;
  throw new Refusal(reasons.invalidField, 'there is no such hash here');
}
