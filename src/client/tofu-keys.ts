// State encryption keys for OpenTofu: messages of its key provider `external` (protocol version 1), and derivation of a
// state's key from a keyring's key. See docs/tofu.md.
import { fromBase64Url, fromUtf8, toBase64, toBase64Url } from '../crypto/bytes.ts';
import { hkdfSha256 } from '../crypto/hash.ts';
import { systemRandom } from '../crypto/random.ts';
import { KmsError } from '../errors.ts';
import { isJsonObject } from '../model/json.ts';

/** The first line of every answer. */
export const tofuGreeting = '{"magic":"OpenTofu-External-Key-Provider","version":1}\n';

/** Public metadata stored beside a state, by which its key is found again. */
interface TofuMetadata {
  readonly version: 1;
  /** Header as returned by the appliance with the ring's key. */
  readonly header: string;
  /** 32 random bytes, base64url. */
  readonly salt: string;
}

const version = 1;
const saltLength = 32;

/**
 * Metadata of the state to read; undefined if there is none: `null`, or `{"external_data": null}` as OpenTofu 1.10
 * sends it. Throws `invalid` for anything else, such as empty metadata, which come from another program.
 */
export function readTofuInput(bytes: Uint8Array): TofuMetadata | undefined {
  let input: unknown;
  try {
    input = JSON.parse(fromUtf8(bytes) ?? '');
  } catch (cause) {
    throw new KmsError('invalid', 'expected what OpenTofu says to a key provider, JSON, on stdin', {
      cause,
      hint: 'OpenTofu starts this command itself: see docs/tofu.md',
    });
  }
  if (input === null) return undefined;
  if (!isJsonObject(input)) throw noInput(kindOf(input));
  const { external_data: data, ...others } = input;
  if (data === undefined) throw noInput('an object without it', 'keys' in others);
  if (Object.keys(others).length > 0) throw noInput('one with other fields beside it');
  if (data === null) return undefined;
  if (!isJsonObject(data)) throw noInput(`one with ${kindOf(data)} in it`);
  const { header, salt } = data;
  if (typeof data.version === 'number' && data.version > version) {
    throw new KmsError(
      'invalid',
      `the state has metadata of version ${data.version}, which this program does not know`,
      {
        hint: 'use a newer version of kms',
      },
    );
  }
  const isOurs =
    data.version === version &&
    typeof header === 'string' &&
    /^[A-Za-z0-9_-]{1,1024}$/.test(header) &&
    typeof salt === 'string' &&
    fromBase64Url(salt)?.length === saltLength;
  if (!isOurs) {
    throw new KmsError('invalid', 'the metadata of the state was not made by this program', {
      hint: 'was it encrypted with another key provider? then name that as the fallback',
    });
  }
  return { version, header, salt };
}

function noInput(got: string, isAnswer = false): KmsError {
  const hint = isAnswer ? { hint: 'this is an answer of the command: give it what is there as meta' } : {};
  return new KmsError('invalid', `expected null or an object with external_data alone on stdin, got ${got}`, hint);
}

function kindOf(value: unknown): string {
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`;
}

/** Metadata for a new key, derived from the key that came with this header. */
export function newTofuMetadata(header: string, random = systemRandom): TofuMetadata {
  return { version, header, salt: toBase64Url(random(saltLength)) };
}

/** 32 bytes derived for this state alone: the keyring's key serves others too. */
export function tofuKeyOf(ringKey: Uint8Array, { header, salt }: TofuMetadata): Uint8Array {
  return hkdfSha256(ringKey, `kms/tofu/v1 ${header} ${salt}`, 32);
}

/** The provider's answer with the keys, on one line. */
export function tofuAnswer(encryption: Uint8Array, decryption: Uint8Array | undefined, metadata: TofuMetadata): string {
  const keys = {
    encryption_key: toBase64(encryption),
    ...(decryption && { decryption_key: toBase64(decryption) }),
  };
  return `${JSON.stringify({ keys, meta: { external_data: metadata } })}\n`;
}
