// Operations that work with keys: Encrypt, Decrypt, Sign, Signature Verify, MAC, MAC Verify; and those without a key:
// Hash, RNG Retrieve, RNG Seed.
import type { KeyInUse } from '../../core/key-in-use.ts';
import { isLongWork } from '../../core/key-rehearsal.ts';
import { isRsa } from '../../core/key-versions.ts';
import { type KmipObject, versionOfObject } from '../../core/kmip-objects.ts';
import { concatBytes } from '../../crypto/bytes.ts';
import {
  type BlockMode,
  type BlockPadding,
  blockDecrypt,
  blockEncrypt,
  isAuthenticated,
  ivLengths,
} from '../../crypto/managed/block-modes.ts';
import { hmac, hmacHashes, isHmac, plainDigest } from '../../crypto/managed/digests.ts';
import type { SignatureOptions, SigningType } from '../../crypto/managed/signatures.ts';
import { KmsError } from '../../errors.ts';
import { isCipher, type KeyType, keyTypeFacts, type plainHashes as knownHashes } from '../../model/key-types.ts';
import { hashes, modes, paddings, usages, validity } from './enumerations.ts';
import { attributesOf } from './objects.ts';
import type { Operation, Work } from './operation.ts';
import { Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import {
  byteString,
  enumeration,
  fieldOf,
  integer,
  one,
  type Structure,
  structure,
  structureIn,
  text,
} from './ttlv.ts';
import { takeUsage } from './usage-limits.ts';
import { keyInUse, type Use } from './uses.ts';

/** Bytes that one operation takes: some 20 ms of AES without the platform's help. */
const mostData = 256 * 1024;
const mostRandom = 65_536;

const uses = {
  encrypt: { use: 'encrypt', right: 'encrypt', mask: usages.encrypt, protects: true },
  decrypt: { use: 'decrypt', right: 'decrypt', mask: usages.decrypt, protects: false },
  sign: { use: 'sign', right: 'sign', mask: usages.sign, protects: true },
  verify: { use: 'verify', right: 'verify', mask: usages.verify, protects: false },
  mac: { use: 'mac', right: 'mac', mask: usages.mac, protects: true },
  verifyMac: { use: 'verify', right: 'verify', mask: usages.verifyMac, protects: false },
} as const satisfies Record<string, Use>;

/** Cryptographic Parameters: the request's, or else the first ones of the key. */
function parametersOf(object: KmipObject, payload: Structure): Structure | undefined {
  const given = structureIn(payload, tags.cryptographicParameters);
  if (given) return given;
  const own = attributesOf(object).first('Cryptographic Parameters');
  return own?.type === 'structure' ? own : undefined;
}

/** The bytes of a field; none if it is absent. Throws `Refusal` for more than an operation takes. */
export function dataOf(from: Structure | undefined, tag: number): Uint8Array {
  const data = fieldOf(from, tag, 'bytes') ?? new Uint8Array();
  if (data.length <= mostData) return data;
  throw new Refusal(reasons.invalidField, `one operation takes at most ${mostData} bytes`);
}

function refuseStreams(payload: Structure): void {
  if (!one(payload, tags.correlationValue) && fieldOf(payload, tags.initIndicator, 'boolean') !== true) return;
  throw new Refusal(reasons.featureNotSupported, 'data in several parts are not supported');
}

const blockModes: Readonly<Record<number, BlockMode>> = {
  [modes.cbc]: 'cbc',
  [modes.ecb]: 'ecb',
  [modes.ctr]: 'ctr',
  [modes.gcm]: 'gcm',
};

const blockPaddings: Readonly<Record<number, BlockPadding>> = {
  [paddings.none]: 'none',
  [paddings.pkcs5]: 'pkcs7',
  [paddings.ansiX923]: 'x923',
};

interface CipherChoice {
  readonly mode: BlockMode;
  readonly padding: BlockPadding;
  readonly tagLength: number;
}

/** How to encrypt with a symmetric key. Throws `Refusal` for what it cannot. */
export function cipherOf(type: KeyType, from: Structure | undefined): CipherChoice {
  const number = fieldOf(from, tags.blockCipherMode, 'enumeration');
  const mode = type === 'chacha20-poly1305' ? type : blockModes[number ?? modes.cbc];
  const padding = blockPaddings[fieldOf(from, tags.paddingMethod, 'enumeration') ?? paddings.none];
  if (!mode || !padding || !isCipher(type)) {
    throw new Refusal(reasons.invalidField, 'the key does not encrypt in this mode, or not with this padding');
  }
  return { mode, padding, tagLength: fieldOf(from, tags.tagLength, 'integer') ?? 16 };
}

/** Runs `work`; a problem of lengths is a cryptographic failure there. */
export function cryptographic<R>(work: () => R): R {
  try {
    return work();
  } catch (error) {
    if (error instanceof KmsError && !(error instanceof Refusal) && error.code === 'invalid') {
      throw new Refusal(reasons.cryptographicFailure, error.message);
    }
    throw error;
  }
}

export const encrypt: Operation = {
  code: 0x1f,
  name: 'Encrypt',
  since: 12,
  action: 'key.encrypt',
  run(work, payload) {
    const object = work.find(payload, 'encrypt');
    const use = keyInUse(work, object, uses.encrypt);
    refuseStreams(payload);
    const data = dataOf(payload, tags.data);
    const from = parametersOf(object, payload);
    takeUsage(work, object, data.length);
    const stored = use.toMake(0);
    const fields = isRsa(use.type)
      ? [byteString(tags.data, oaep(use, from, data))]
      : sealed(work, use, payload, from, data);
    use.count(stored.version);
    return structure(tags.responsePayload, text(tags.uniqueIdentifier, object.id), fields);
  },
};

/** Fields of the answer: the data, the vector if it was made here, and the tag from 1.4 on. */
function sealed(work: Work, use: KeyInUse, payload: Structure, from: Structure | undefined, data: Uint8Array) {
  const { mode, padding, tagLength } = cipherOf(use.type, from);
  const given = fieldOf(payload, tags.ivCounterNonce, 'bytes');
  const needsVector = ivLengths[mode] > 0 && given === undefined;
  if (needsVector && fieldOf(from, tags.randomIv, 'boolean') === false && !isAuthenticated(mode)) {
    throw new Refusal(reasons.missingData, 'no initialization vector is given, and none is to be made');
  }
  const length = mode === 'gcm' ? (fieldOf(from, tags.ivLength, 'integer') ?? 12) : ivLengths[mode];
  if (length < 0 || length > 128) throw new Refusal(reasons.invalidField, 'the length of the initialization vector');
  const iv = mode === 'ecb' ? new Uint8Array() : (given ?? work.ctx.world.random(length));
  const associated = dataOf(payload, tags.additionalData);
  const key = use.opened(use.toRead(versionOfObject(work.ctx, use).version));
  const { bytes, tag } = cryptographic(() => blockEncrypt({ mode, key, iv, padding, associated, tagLength }, data));
  const isApart = work.version >= 14;
  return [
    byteString(tags.data, isApart ? bytes : concatBytes(bytes, tag)),
    ...(needsVector ? [byteString(tags.ivCounterNonce, iv)] : []),
    ...(isAuthenticated(mode) && isApart ? [byteString(tags.authenticationTag, tag)] : []),
  ];
}

type OaepHash = 'sha1' | 'sha2-256' | 'sha2-384' | 'sha2-512';

function oaepHash(from: Structure | undefined): OaepHash {
  if (fieldOf(from, tags.paddingMethod, 'enumeration') !== paddings.oaep) {
    throw new Refusal(reasons.invalidField, 'RSA keys encrypt with OAEP alone');
  }
  const number = fieldOf(from, tags.hashingAlgorithm, 'enumeration') ?? 4;
  const other = fieldOf(from, tags.maskGeneratorHashingAlgorithm, 'enumeration') ?? number;
  if (other !== number || one(from ?? structure(0), tags.pSource)) {
    throw new Refusal(reasons.featureNotSupported, 'OAEP has one hash here, and no label');
  }
  const hash = hashes[number];
  if (hash && hash !== 'sha2-224') return hash;
  throw new Refusal(reasons.invalidField, 'OAEP has no such hash here');
}

function oaep(use: KeyInUse, from: Structure | undefined, bytes: Uint8Array): Uint8Array {
  const { type } = use;
  if (!isRsa(type)) throw new KmsError('internal', 'expected an RSA key');
  const publicKey = use.publicKey(use.toMake(0));
  const hash = oaepHash(from);
  return cryptographic(() => use.work.run('oaepEncrypt', { type, publicKey, hash, bytes: bytes.slice() }));
}

export const decrypt: Operation = {
  code: 0x20,
  name: 'Decrypt',
  since: 12,
  action: 'key.decrypt',
  isCostly: (_payload, type) => type === undefined || isLongWork(type, 'make', {}),
  run(work, payload) {
    const object = work.find(payload, 'decrypt');
    const use = keyInUse(work, object, uses.decrypt);
    refuseStreams(payload);
    const from = parametersOf(object, payload);
    const data = dataOf(payload, tags.data);
    const stored = use.toRead(versionOfObject(work.ctx, object).version);
    const key = use.opened(stored);
    const { type } = use;
    const plain = isRsa(type)
      ? use.work.run('oaepDecrypt', { type, key, hash: oaepHash(from), sealed: data })
      : opened(type, key, payload, from, data);
    if (!plain) throw new Refusal(reasons.cryptographicFailure, 'the data do not decrypt with this key');
    use.count(stored.version);
    const answer = byteString(tags.data, plain);
    return structure(tags.responsePayload, text(tags.uniqueIdentifier, object.id), answer);
  },
};

function opened(
  type: KeyType,
  key: Uint8Array,
  payload: Structure,
  from: Structure | undefined,
  data: Uint8Array,
): Uint8Array | undefined {
  const { mode, padding, tagLength: wanted } = cipherOf(type, from);
  const given = fieldOf(payload, tags.ivCounterNonce, 'bytes');
  if (given === undefined && mode !== 'ecb') {
    throw new Refusal(reasons.invalidMessage, 'the initialization vector is missing');
  }
  const iv = mode === 'ecb' ? new Uint8Array() : (given ?? new Uint8Array());
  const associated = dataOf(payload, tags.additionalData);
  const apart = fieldOf(payload, tags.authenticationTag, 'bytes');
  const isBehind = isAuthenticated(mode) && apart === undefined;
  const tagLength = apart?.length ?? wanted;
  const end = isBehind ? data.length - tagLength : data.length;
  if (end < 0) return undefined;
  const cipher = { mode, key, iv, padding, associated, tagLength };
  const message = { bytes: data.subarray(0, end), tag: apart ?? data.subarray(end) };
  return cryptographic(() => blockDecrypt(cipher, message));
}

/** Hash of a Digital Signature Algorithm; that of PSS is another field's. */
const signatureHashes: Readonly<Record<number, number>> = {
  ...{ 3: 4, 4: 5, 5: 6, 6: 7, 7: 8 },
  ...{ 12: 4, 13: 5, 14: 6, 15: 7, 16: 8 },
};
const pssAlgorithm = 8;

function signatureOptions(type: KeyType, from: Structure | undefined, isVerifying: boolean): SignatureOptions {
  const [usual] = keyTypeFacts[type].hashes;
  if (usual === undefined) return {};
  const algorithm = fieldOf(from, tags.digitalSignatureAlgorithm, 'enumeration');
  const number = fieldOf(from, tags.hashingAlgorithm, 'enumeration') ?? signatureHashes[algorithm ?? 0];
  const hash = number === undefined ? usual : hashes[number];
  if (hash === undefined || hash === 'sha1') {
    throw new Refusal(reasons.invalidField, 'signatures are made and verified with hashes of SHA-2 alone');
  }
  if (!isRsa(type)) return { hash };
  const isPss = algorithm === pssAlgorithm || fieldOf(from, tags.paddingMethod, 'enumeration') === paddings.pss;
  if (!isPss) return { hash, padding: 'pkcs1v15' };
  const salt = fieldOf(from, tags.saltLength, 'integer');
  if (salt !== undefined && (salt < 0 || salt > 512)) throw new Refusal(reasons.invalidField, 'the length of the salt');
  return { hash, padding: 'pss', saltLength: salt ?? (isVerifying ? 'any' : 'hash') };
}

function signingType(type: KeyType): SigningType {
  // Cast: these are the types that sign.
  if (keyTypeFacts[type].isAsymmetric) return type as SigningType;
  throw new Refusal(reasons.invalidField, 'keys of this algorithm do not sign');
}

/** The message to sign, or its hash. */
function signable(payload: Structure) {
  const isDigest = one(payload, tags.digestedData) !== undefined;
  return { bytes: dataOf(payload, isDigest ? tags.digestedData : tags.data), isDigest };
}

export const sign: Operation = {
  code: 0x21,
  name: 'Sign',
  since: 12,
  action: 'key.sign',
  isCostly: (_payload, type) => type === undefined || isLongWork(type, 'make', {}),
  run(work, payload) {
    const object = work.find(payload, 'sign');
    const use = keyInUse(work, object, uses.sign);
    refuseStreams(payload);
    const type = signingType(use.type);
    const options = signatureOptions(use.type, parametersOf(object, payload), false);
    const input = signable(payload);
    takeUsage(work, object, input.bytes.length);
    const stored = use.toMake(0, 'signing');
    const key = use.opened(stored);
    const signature = cryptographic(() => use.work.run('sign', { type, key, input, options }));
    use.count(stored.version);
    const answer = byteString(tags.signatureData, signature);
    return structure(tags.responsePayload, text(tags.uniqueIdentifier, object.id), answer);
  },
};

function validityItem(isValid: boolean) {
  return enumeration(tags.validityIndicator, isValid ? validity.valid : validity.invalid);
}

export const signatureVerify: Operation = {
  code: 0x22,
  name: 'Signature Verify',
  since: 12,
  action: 'key.verify',
  isCostly: (_payload, type) => type === undefined || isLongWork(type, 'read', {}),
  run(work, payload) {
    const object = work.find(payload, 'verify');
    const use = keyInUse(work, object, uses.verify);
    refuseStreams(payload);
    const type = signingType(use.type);
    const options = signatureOptions(use.type, parametersOf(object, payload), true);
    const input = signable(payload);
    const signature = fieldOf(payload, tags.signatureData, 'bytes') ?? new Uint8Array();
    const stored = use.toRead(versionOfObject(work.ctx, object).version);
    const publicKey = use.publicKey(stored);
    const isValid = cryptographic(() => use.work.run('verify', { type, publicKey, input, options, signature }));
    use.count(stored.version);
    return structure(tags.responsePayload, text(tags.uniqueIdentifier, object.id), validityItem(isValid));
  },
};

/** The hash of a MAC: the key's own, which a request may name as an algorithm. */
function macHash({ type }: KeyInUse) {
  if (Object.hasOwn(hmacHashes, type)) return hmacHashes[type as keyof typeof hmacHashes];
  throw new Refusal(reasons.invalidField, 'keys of this algorithm make no MACs');
}

const hmacAlgorithms: Readonly<Record<number, keyof typeof hmacHashes>> = {
  8: 'hmac-sha224',
  9: 'hmac-sha256',
  10: 'hmac-sha384',
  11: 'hmac-sha512',
};

function needOwnAlgorithm({ type }: KeyInUse, from: Structure | undefined): void {
  const algorithm = fieldOf(from, tags.cryptographicAlgorithm, 'enumeration');
  const hash = fieldOf(from, tags.hashingAlgorithm, 'enumeration');
  const own = Object.hasOwn(hmacHashes, type) ? hmacHashes[type as keyof typeof hmacHashes] : undefined;
  const fits =
    (algorithm === undefined || hmacAlgorithms[algorithm] === type) && (hash === undefined || hashes[hash] === own);
  if (!fits) throw new Refusal(reasons.invalidField, 'the key makes MACs of its own algorithm alone');
}

export const mac: Operation = {
  code: 0x23,
  name: 'MAC',
  since: 12,
  action: 'key.mac',
  run(work, payload) {
    const object = work.find(payload, 'mac');
    const use = keyInUse(work, object, uses.mac);
    refuseStreams(payload);
    needOwnAlgorithm(use, parametersOf(object, payload));
    const data = dataOf(payload, tags.data);
    takeUsage(work, object, data.length);
    const stored = use.toMake(0);
    const made = hmac(macHash(use), use.opened(stored), data);
    use.count(stored.version);
    const answer = byteString(tags.macData, made);
    return structure(tags.responsePayload, text(tags.uniqueIdentifier, object.id), answer);
  },
};

export const macVerify: Operation = {
  code: 0x24,
  name: 'MAC Verify',
  since: 12,
  action: 'key.verify',
  run(work, payload) {
    const object = work.find(payload, 'verify');
    const use = keyInUse(work, object, uses.verifyMac);
    refuseStreams(payload);
    needOwnAlgorithm(use, parametersOf(object, payload));
    const given = fieldOf(payload, tags.macData, 'bytes') ?? new Uint8Array();
    const stored = use.toRead(versionOfObject(work.ctx, object).version);
    const isValid = isHmac(macHash(use), use.opened(stored), dataOf(payload, tags.data), given);
    use.count(stored.version);
    return structure(tags.responsePayload, text(tags.uniqueIdentifier, object.id), validityItem(isValid));
  },
};

const plainHashes: Readonly<Record<number, (typeof knownHashes)[number]>> = {
  ...{ 5: 'sha2-224', 6: 'sha2-256', 7: 'sha2-384', 8: 'sha2-512' },
  ...{ 14: 'sha3-224', 15: 'sha3-256', 16: 'sha3-384', 17: 'sha3-512' },
};

export const hash: Operation = {
  code: 0x27,
  name: 'Hash',
  since: 12,
  action: 'key.hash',
  run(_work, payload) {
    refuseStreams(payload);
    const number = fieldOf(structureIn(payload, tags.cryptographicParameters), tags.hashingAlgorithm, 'enumeration');
    const name = plainHashes[number ?? 0];
    if (!name) throw new Refusal(reasons.invalidField, 'there is no such hash here');
    return structure(tags.responsePayload, byteString(tags.data, plainDigest(name, dataOf(payload, tags.data))));
  },
};

export const rngRetrieve: Operation = {
  code: 0x25,
  name: 'RNG Retrieve',
  since: 12,
  action: 'key.random',
  run({ ctx }, payload) {
    const length = fieldOf(payload, tags.dataLength, 'integer') ?? 0;
    if (length < 1 || length > mostRandom) {
      throw new Refusal(reasons.invalidField, `1 to ${mostRandom} random bytes are handed out at once`);
    }
    return structure(tags.responsePayload, byteString(tags.data, ctx.world.random(length)));
  },
};

/** Takes nothing: the system's generator needs no help. */
export const rngSeed: Operation = {
  code: 0x26,
  name: 'RNG Seed',
  since: 12,
  action: 'key.random',
  run: () => structure(tags.responsePayload, integer(tags.dataLength, 0)),
};
