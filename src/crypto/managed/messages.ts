// Ciphertexts, signatures and MACs by managed keys as text: `vault:vN:` and base64. A sealed message is a nonce, the
// ciphertext and the tag, bound to key, version and the caller's associated data (docs/formats.md). Vault's own have
// the same form, but are bound to the associated data alone.
import { concatBytes, fromBase64, toBase64, utf8 } from '../bytes.ts';
import { type CipherType, cipherKeyLengths, openAead, sealAead } from './ciphers.ts';
import { hkdfBytes } from './digests.ts';
import { type KeyPlace, placeBytes } from './sealed-keys.ts';

const none = new Uint8Array(0);

/** Bound data of messages without associated data, made once per place. */
const messagePlaces = new WeakMap<KeyPlace, Uint8Array>();

function boundData(place: KeyPlace, associated: Uint8Array): Uint8Array {
  let bytes = messagePlaces.get(place);
  if (!bytes) {
    bytes = placeBytes('kms/transit/1', place, none);
    messagePlaces.set(place, bytes);
  }
  return associated.length === 0 ? bytes : concatBytes(bytes, associated);
}

/** The nonce, the ciphertext and the tag. */
export function sealMessage(
  type: CipherType,
  key: Uint8Array,
  place: KeyPlace,
  plaintext: Uint8Array,
  associated: Uint8Array,
  random: (length: number) => Uint8Array,
): Uint8Array {
  return sealAead(type, key, plaintext, boundData(place, associated), random);
}

/** The plaintext; undefined if key, place, associated data or message is wrong. */
export function openMessage(
  type: CipherType,
  key: Uint8Array,
  place: KeyPlace,
  bytes: Uint8Array,
  associated: Uint8Array,
): Uint8Array | undefined {
  return openAead(type, key, bytes, boundData(place, associated));
}

/** The plaintext of a message that Vault or OpenBao made; undefined as above. */
export function openVaultMessage(
  type: CipherType,
  key: Uint8Array,
  bytes: Uint8Array,
  associated: Uint8Array,
): Uint8Array | undefined {
  return openAead(type, key, bytes, associated);
}

/** The key for a context, of a key whose messages have derived keys: HKDF-SHA256 without a salt. */
export function derivedKey(type: CipherType, key: Uint8Array, context: Uint8Array): Uint8Array {
  const info = concatBytes(utf8('kms/transit/derived/1\0'), context);
  return hkdfBytes(key, { hash: 'sha2-256', info, length: cipherKeyLengths[type] });
}

/** The key that Vault derives for a context (`kdf` hkdf_sha256). */
export function vaultDerivedKey(type: CipherType, key: Uint8Array, context: Uint8Array): Uint8Array {
  return hkdfBytes(key, { hash: 'sha2-256', info: context, length: cipherKeyLengths[type] });
}

export function prefixed(version: number, bytes: Uint8Array): string {
  return `vault:v${version}:${toBase64(bytes)}`;
}

/** Kinds of texts, as Vault names them in its problems. */
type Kind = 'ciphertext' | 'signature' | 'HMAC';

/** Version and bytes of such a text, or the problem with it in Vault's wording. */
export function readPrefixed(
  text: string,
  what: Kind,
): { readonly version: number; readonly bytes: Uint8Array } | { readonly problem: string } {
  if (!text.startsWith('vault:v'))
    return { problem: `invalid ${what}${what === 'HMAC' ? ' to verify' : ''}: no prefix` };
  const colon = text.indexOf(':', 7);
  if (colon < 0) return { problem: `invalid ${what}: wrong number of fields` };
  const digits = text.slice(7, colon);
  if (!/^[0-9]{1,9}$/.test(digits)) return { problem: `invalid ${what}: version number could not be decoded` };
  // Transit once counted from 0, and still reads 0 as 1.
  const version = Math.max(1, Number(digits));
  const bytes = readBase64(text.slice(colon + 1));
  if (bytes instanceof Uint8Array) return { version, bytes };
  if (what === 'signature') return { problem: 'invalid base64 signature value' };
  if (what === 'ciphertext') return { problem: 'invalid ciphertext: could not decode base64' };
  const problem = `unable to decode verification HMAC as base64: illegal base64 data at input byte ${bytes.wrongAt}`;
  return { problem };
}

/**
 * Decodes base64 as Go does: line ends are skipped, and spare bits of the last character ignored. For malformed text,
 * returns the offset that Go reports.
 */
export function readBase64(text: string): Uint8Array | { readonly wrongAt: number } {
  // The common case.
  const canonical = fromBase64(text);
  if (canonical) return canonical;
  const lone = text.replace(/[\r\n]/g, '');
  const bad = lone.search(/[^A-Za-z0-9+/=]/);
  const whole = lone.length - (lone.length % 4);
  if (bad < 0 && whole === lone.length && /^[^=]*={0,2}$/.test(lone)) {
    try {
      return Uint8Array.fromBase64(lone);
    } catch {
      // The remaining errors are located below.
    }
  }
  return { wrongAt: bad >= 0 ? bad : (misplaced(lone) ?? whole) };
}

/** The offset at which Go finds misplaced padding, or text after the padding. */
function misplaced(text: string): number | undefined {
  const padding = text.indexOf('=');
  if (padding < 0) return undefined;
  const place = padding % 4;
  if (place < 2) return padding;
  const end = place === 2 && text[padding + 1] === '=' ? padding + 2 : padding + 1;
  return end < text.length ? end : undefined;
}
