// The `header` of an encrypt, meant to stand in front of a ciphertext: version, flags, the hash, and the asset's id,
// version and signature where there is an asset. Each of the two parts has a MAC, so that it can be told which was
// altered.
//
//   version 1 (1) | flags (1) | hash (75) | mac (12)   and with an asset   asset ULID (16) | version (4, big-endian) |
//   Ed25519 signature (64) | mac (16)
//
// The text is base64url, 119 or 252 characters. Without an asset the first MAC is a part of the hash's own, which costs
// nothing more; with one it is under another key, so that an asset cannot be cut off. See docs/formats.md.

import { KmsError } from '../errors.ts';
import { equalBytes, fromBase64Url, toBase64Url, utf8 } from './bytes.ts';
import { hmacSha256 } from './fast-hash.ts';
import {
  epochOfHash,
  headerMacFits,
  keyHashLength,
  keyOfEpoch,
  type SealedKeyHash,
  type SealingKeys,
} from './key-hash.ts';
import { idFromBytes, knownIdToBytes } from './ulid.ts';

interface HeaderAsset {
  readonly id: string;
  readonly version: number;
  /** Ed25519, 64 bytes. */
  readonly signature: Uint8Array;
}

export interface DecodedHeader {
  readonly version: number;
  readonly hash: string;
  readonly hasAsset: boolean;
  /** Whether version, flags and hash are as they were made. */
  readonly intact: boolean;
  /** Its `intact` says whether the asset part belongs to this hash and is as it was made. */
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
const hasAssetFlag = 1;

/** Where a header without an Asset is put together: arrays over 64 bytes are costly to make. */
const base = new Uint8Array(baseLength);

const headerLabel = utf8('kms/header/v1');
const assetLabel = utf8('kms/header-asset/v1');

/** The header of what `sealKeyHash` made, under the keys of the hash's own epoch. */
export function encodeHeader(
  keys: SealingKeys,
  { content, mac: hashMac, asset }: SealedKeyHash & { readonly asset?: HeaderAsset },
): string {
  const made = asset ? new Uint8Array(assetLength) : base;
  made[0] = 1;
  made[1] = asset ? hasAssetFlag : 0;
  made.set(content, hashStart);
  // The tag of the hash, and behind it what authenticates a header of no more than that.
  made.set(hashMac, hashStart + content.length);
  if (!asset) return toBase64Url(made);
  const mac = keyedMac(keys.key('header', epochOfHash(content)));
  made.set(assetHeaderMac(mac, made), macStart);
  if (asset.signature.length !== 64) throw new KmsError('internal', 'expected a signature of 64 bytes');
  made.set(knownIdToBytes('asset', asset.id), baseLength);
  new DataView(made.buffer).setUint32(versionStart, asset.version);
  made.set(asset.signature, signatureStart);
  made.set(assetMac(mac, made), assetMacStart);
  return toBase64Url(made);
}

/**
 * What a header says and whether that is authentic; undefined when it has not the form of one or names keys not held.
 */
export function decodeHeader(keys: SealingKeys, text: string): DecodedHeader | undefined {
  const bytes = headerBytes(text);
  if (!bytes) return undefined;
  const hashBytes = bytes.subarray(hashStart, macStart);
  const baseMac = bytes.subarray(macStart, baseLength);
  const { version, hash, hasAsset } = baseOf(bytes);
  const key = keyOfEpoch(keys, hasAsset ? 'header' : 'hash', epochOfHash(hashBytes));
  if (!key) return undefined;
  if (!hasAsset) return { version, hash, hasAsset, intact: headerMacFits(key, hashBytes, baseMac) };
  const mac = keyedMac(key);
  const intact = equalBytes(assetHeaderMac(mac, bytes), baseMac);
  const asset = {
    id: idFromBytes('asset', bytes, baseLength),
    version: assetVersion(bytes),
    signature: bytes.slice(signatureStart, assetMacStart),
    intact: equalBytes(assetMac(mac, bytes), bytes.subarray(assetMacStart)),
  };
  return { version, hash, hasAsset, intact, asset };
}

export interface HeaderInspection {
  readonly version: number;
  readonly hash: string;
  readonly hasAsset: boolean;
  readonly assetId?: string;
  readonly assetVersion?: number;
}

/** What a header says, without keys and so without any proof; undefined when it has not the form of one. */
export function inspectHeader(text: string): HeaderInspection | undefined {
  const bytes = headerBytes(text);
  if (!bytes) return undefined;
  const base = baseOf(bytes);
  if (!base.hasAsset) return base;
  return { ...base, assetId: idFromBytes('asset', bytes, baseLength), assetVersion: assetVersion(bytes) };
}

/** The bytes of a header of this version, whose flags and length fit each other. */
function headerBytes(text: string): Uint8Array | undefined {
  if (text.length !== 119 && text.length !== 252) return undefined;
  const bytes = fromBase64Url(text);
  if (bytes?.[0] !== 1 || bytes[hashStart] !== 1) return undefined;
  return bytes[1] === (bytes.length === assetLength ? hasAssetFlag : 0) ? bytes : undefined;
}

function baseOf(bytes: Uint8Array): { version: number; hash: string; hasAsset: boolean } {
  return { version: 1, hash: toBase64Url(bytes.subarray(hashStart, macStart)), hasAsset: bytes[1] === hasAssetFlag };
}

function assetVersion(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(versionStart);
}

type Mac = (message: Uint8Array) => Uint8Array;

/** The first MAC of a header with an asset. */
function assetHeaderMac(mac: Mac, bytes: Uint8Array): Uint8Array {
  return macOf(mac, headerLabel, bytes.subarray(0, macStart)).subarray(0, macLength);
}

/** Over hash, asset id, version and signature: the hash binds the asset part to this header. */
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

/** The keyed state of each key in use. A key that is let go takes its state along. */
const macs = new WeakMap<Uint8Array, Mac>();

function keyedMac(key: Uint8Array): Mac {
  let mac = macs.get(key);
  if (!mac) {
    mac = hmacSha256(key);
    macs.set(key, mac);
  }
  return mac;
}
