// The `header` of an encrypt, meant to precede a ciphertext: version, flags, the hash, and the asset's id, version and
// signature if there is one. Each of the two parts has its own MAC, so that a reader can tell which was altered.
//
//   version 1 (1) | flags (1) | hash (75) | mac (12)   and with an asset   asset ULID (16) | version (4, big-endian) |
//   Ed25519 signature (64) | mac (16)
//
// The text is base64url, 119 or 252 characters. Without flags the first MAC is part of the hash's own, at no extra
// cost; with flags it is under another key and covers them, so that none can be removed. See docs/formats.md.

import { KmsError } from '../errors.ts';
import { equalParts, readBase64Url, toBase64Url, utf8 } from './bytes.ts';
import { hmacSha256, keyedHmac, type Mac } from './fast-hash.ts';
import {
  epochOfHash,
  headerMacFits,
  type KeyReference,
  keyHashLength,
  openKeyHashAt,
  type SealedKeyHash,
  type SealingKeys,
} from './key-hash.ts';
import { idFromBytes, knownIdInto } from './ulid.ts';

interface HeaderAsset {
  readonly id: string;
  readonly version: number;
  /** Ed25519, 64 bytes. */
  readonly signature: Uint8Array;
}

/** How the ciphertext behind a header is opened. */
interface HeaderUse {
  /** With a share from the appliance, instead of with the ring's key. */
  readonly isRecipient: boolean;
  /** Whether the writer may have sealed that share too, so that the appliance need not be asked. */
  readonly isOffline: boolean;
}

export interface DecodedHeader extends HeaderUse {
  readonly version: number;
  readonly hasAsset: boolean;
  /** Ring and key named by its hash; undefined if the hash was altered or is another tenant's. */
  readonly reference: KeyReference | undefined;
  /** Whether version, flags and hash are authentic. */
  readonly intact: boolean;
  /** `intact` tells whether the asset part belongs to this hash and is authentic. */
  readonly asset?: HeaderAsset & { readonly intact: boolean };
}

const hashStart = 2;
const macStart = hashStart + keyHashLength;
const macLength = 12;
const baseLength = macStart + macLength;
const versionStart = baseLength + 16;
const signatureStart = versionStart + 4;
const assetMacStart = signatureStart + 64;
const assetLength = assetMacStart + 16;
const flags = { asset: 1, recipient: 2, offline: 4 };

/** Buffer for building a header without an asset: arrays over 64 bytes are costly to make. */
const base = new Uint8Array(baseLength);
const ordinary: HeaderUse = { isRecipient: false, isOffline: false };

const headerLabel = utf8('kms/header/v1');
const assetLabel = utf8('kms/header-asset/v1');
const shareLabel = utf8('kms/share/v1');

interface HeaderContent {
  readonly asset?: HeaderAsset;
  /** Default: neither. */
  readonly use?: HeaderUse;
}

/** The header for a result of `sealKeyHash`, under the keys of the hash's own epoch. */
export function encodeHeader(
  keys: SealingKeys,
  { content, mac: hashMac, asset, use = ordinary }: SealedKeyHash & HeaderContent,
): string {
  const made = asset ? new Uint8Array(assetLength) : base;
  made[0] = 1;
  made[1] = flagsOf(asset !== undefined, use);
  made.set(content, hashStart);
  // The hash's tag, and after it the MAC of a header that has nothing but the hash.
  made.set(hashMac, hashStart + content.length);
  if (made[1] === 0) return toBase64Url(made);
  const mac = keyedHmac(keys.key('header', epochOfHash(content)));
  made.set(flagsMac(mac, made), macStart);
  if (!asset) return toBase64Url(made);
  if (asset.signature.length !== 64) throw new KmsError('internal', 'expected a signature of 64 bytes');
  knownIdInto('asset', asset.id, made, baseLength);
  new DataView(made.buffer).setUint32(versionStart, asset.version);
  made.set(asset.signature, signatureStart);
  made.set(assetMac(mac, made), assetMacStart);
  return toBase64Url(made);
}

/**
 * Decodes a header and checks its MACs; undefined if the text is not formed like a header or its keys are not held. For
 * the hash as text, see `inspectHeader`.
 */
export function decodeHeader(keys: SealingKeys, text: string): DecodedHeader | undefined {
  if (!readHeader(text)) return undefined;
  const hash = openKeyHashAt(keys, read, hashStart);
  if (!hash) return undefined;
  const { reference } = hash;
  if (read[1] === 0) {
    return { version: 1, hasAsset: false, ...ordinary, reference, intact: headerMacFits(hash, read, macStart) };
  }
  const mac = keyedHmac(keys.key('header', epochOfHash(read, hashStart)));
  const intact = equalParts(flagsMac(mac, read), 0, read, macStart, macLength);
  const said = { version: 1, hasAsset: hasFlag('asset'), ...useInRead(), reference, intact };
  if (!said.hasAsset) return said;
  const asset = {
    id: idFromBytes('asset', read, baseLength),
    version: assetVersion(),
    signature: read.slice(signatureStart, assetMacStart),
    intact: equalParts(assetMac(mac, read), 0, read, assetMacStart, assetLength - assetMacStart),
  };
  return { ...said, asset };
}

/**
 * The appliance's share in the key of a file that was encrypted with this header: 32 bytes, valid as long as the hash.
 * The caller has decoded the header under these keys.
 */
export function shareOf(keys: SealingKeys, header: string): Uint8Array {
  if (!readHeader(header)) throw new KmsError('internal', 'expected a header that was decoded');
  const hash = read.slice(hashStart, macStart);
  return hmacSha256(keyedHmac(keys.key('header', epochOfHash(hash)))(shareLabel))(hash);
}

export interface HeaderInspection extends HeaderUse {
  readonly version: number;
  readonly hash: string;
  readonly hasAsset: boolean;
  readonly assetId?: string;
  readonly assetVersion?: number;
}

/**
 * Contents of a header, read without keys and so without any proof; undefined if the text is not formed like a header.
 */
export function inspectHeader(text: string): HeaderInspection | undefined {
  if (!readHeader(text)) return undefined;
  const base = { version: 1, hash: toBase64Url(read.subarray(hashStart, macStart)), ...useInRead() };
  if (!hasFlag('asset')) return { ...base, hasAsset: false };
  return { ...base, hasAsset: true, assetId: idFromBytes('asset', read, baseLength), assetVersion: assetVersion() };
}

/** Buffer that a header is decoded into. */
const read = new Uint8Array(assetLength);
const readView = new DataView(read.buffer);

function flagsOf(hasAsset: boolean, { isRecipient, isOffline }: HeaderUse): number {
  return (hasAsset ? flags.asset : 0) | (isRecipient ? flags.recipient : 0) | (isOffline ? flags.offline : 0);
}

function hasFlag(flag: keyof typeof flags): boolean {
  return ((read[1] ?? 0) & flags[flag]) !== 0;
}

function useInRead(): HeaderUse {
  return { isRecipient: hasFlag('recipient'), isOffline: hasFlag('offline') };
}

/** Whether the text is a header of this version whose flags and length agree. Its bytes are then in `read`. */
function readHeader(text: string): boolean {
  if (text.length !== 119 && text.length !== 252) return false;
  if (!readBase64Url(text, read) || read[0] !== 1 || read[hashStart] !== 1) return false;
  if ((read[1] ?? 8) > 7 || hasFlag('asset') !== (text.length === 252)) return false;
  return hasFlag('recipient') || !hasFlag('offline');
}

function assetVersion(): number {
  return readView.getUint32(versionStart);
}

/** First MAC of a header with flags. */
function flagsMac(mac: Mac, bytes: Uint8Array): Uint8Array {
  return macOf(mac, headerLabel, bytes.subarray(0, macStart)).subarray(0, macLength);
}

/** MAC over hash, asset id, version and signature: the hash binds the asset part to this header. */
function assetMac(mac: Mac, bytes: Uint8Array): Uint8Array {
  const message = new Uint8Array(assetLabel.length + keyHashLength + 84);
  message.set(assetLabel);
  message.set(bytes.subarray(hashStart, macStart), assetLabel.length);
  message.set(bytes.subarray(baseLength, assetMacStart), assetLabel.length + keyHashLength);
  return mac(message).subarray(0, 16);
}

function macOf(mac: Mac, label: Uint8Array, content: Uint8Array): Uint8Array {
  const message = new Uint8Array(label.length + content.length);
  message.set(label);
  message.set(content, label.length);
  return mac(message).subarray(0, 16);
}
