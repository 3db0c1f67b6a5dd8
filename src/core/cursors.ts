// Cursors between the pages of a list, sealed under the tenant's cursor key and bound to the query: version 1 | key
// epoch u16 BE | nonce 24 | XChaCha20-Poly1305(place as a float64, BE), in base64url.
import { openXChaCha, sealXChaCha } from '../crypto/aead.ts';
import { concatBytes, fromBase64Url, toBase64Url, utf8 } from '../crypto/bytes.ts';
import { canonicalJson } from '../crypto/canonical-json.ts';
import { sha256 } from '../crypto/hash.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import type { World } from './context.ts';

const version = 1;
const headLength = 3;
const nonceLength = 24;
const length = headLength + nonceLength + 8 + 16;
const label = utf8('kms/cursor/v1');

/** Scope that a cursor is bound to: tenant, endpoint and filters, as a JSON value. It opens in no other scope. */
type CursorScope = readonly unknown[];

export function sealCursor(keys: TenantKeys, scope: CursorScope, place: number, world: World): string {
  const head = Uint8Array.of(version, keys.epoch >> 8, keys.epoch & 0xff);
  const nonce = world.random(nonceLength);
  const plain = new Uint8Array(8);
  new DataView(plain.buffer).setFloat64(0, place);
  const sealed = sealXChaCha(keys.key('cursor'), nonce, plain, associated(head, scope));
  return toBase64Url(concatBytes(head, nonce, sealed));
}

/** The place, or undefined if the text is no cursor of this tenant for this scope. */
export function openCursor(keys: TenantKeys, scope: CursorScope, text: string): number | undefined {
  const bytes = fromBase64Url(text);
  if (!bytes || bytes.length !== length || bytes[0] !== version) return undefined;
  const head = bytes.subarray(0, headLength);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const key = keyOf(keys, view.getUint16(1));
  const nonce = bytes.subarray(headLength, headLength + nonceLength);
  const plain = key && openXChaCha(key, nonce, bytes.subarray(headLength + nonceLength), associated(head, scope));
  if (!plain) return undefined;
  return new DataView(plain.buffer, plain.byteOffset, plain.byteLength).getFloat64(0);
}

function associated(head: Uint8Array, scope: CursorScope): Uint8Array {
  return concatBytes(label, head, sha256(utf8(canonicalJson(scope))));
}

function keyOf(keys: TenantKeys, epoch: number): Uint8Array | undefined {
  try {
    return keys.key('cursor', epoch);
  } catch {
    return undefined;
  }
}
