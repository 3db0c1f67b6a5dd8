// Ciphertexts as clients of AWS KMS keep them: a byte that names the format, the tenant key's epoch, a tag, and then,
// masked, the key's id and version, before what the key made. Only this appliance reads which key that is, and only for
// the tenant whose it is; the tag is over all of it, so that nothing of a blob can be exchanged. See docs/formats.md.
import { idsOfBytes, keyIdBytes } from '../../core/aws-names.ts';
import { concatBytes, equalBytes, fromBase64, toBase64, utf8 } from '../../crypto/bytes.ts';
import { keyedHmac, type Mac } from '../../crypto/fast-hash.ts';
import { KmsError } from '../../errors.ts';
import type { TenantKeys } from '../../seal/tenant-keys.ts';
import { failure } from './errors.ts';

const format = 0xa1;
const tagStart = 3;
const tagLength = 16;
const nameStart = tagStart + tagLength;
/** The id, and four bytes of the version. */
const nameLength = 16 + 4;
const bodyStart = nameStart + nameLength;

const tagLabel = utf8('kms/aws-blob-tag/1');
const maskLabel = utf8('kms/aws-blob-mask/1');

type BlobKeys = Pick<TenantKeys, 'epoch' | 'epochs' | 'key'>;

/**
 * Throws for what no blob can be made of: one without its key's id would never be opened again.
 *
 * @param ciphertext `vault:vN:` and base64.
 */
export function blobOf(keys: BlobKeys, keyId: string, ciphertext: unknown): string {
  const [, version = '', base64 = ''] = /^vault:v(\d+):(.+)$/.exec(String(ciphertext)) ?? [];
  const id = keyIdBytes(keyId);
  const body = fromBase64(base64);
  if (!id || !body?.length) throw new KmsError('internal', 'expected the id of a key, and what it encrypted');
  const name = new Uint8Array(nameLength);
  name.set(id);
  new DataView(name.buffer).setUint32(16, Number(version));
  const { epoch } = keys;
  const mac = keyedHmac(keys.key('header', epoch));
  const tag = tagOf(mac, epoch, name, body);
  const head = Uint8Array.of(format, epoch >> 8, epoch & 0xff);
  return toBase64(concatBytes(head, tag, masked(mac, tag, name), body));
}

function tagOf(mac: Mac, epoch: number, name: Uint8Array, body: Uint8Array): Uint8Array {
  return mac(concatBytes(tagLabel, Uint8Array.of(epoch >> 8, epoch & 0xff), name, body)).slice(0, tagLength);
}

/** Each tag has a mask of its own, and the tag depends on all that there is: a synthetic IV. */
function masked(mac: Mac, tag: Uint8Array, name: Uint8Array): Uint8Array {
  const mask = mac(concatBytes(maskLabel, tag));
  const made = new Uint8Array(nameLength);
  for (let at = 0; at < nameLength; at++) made[at] = (name[at] ?? 0) ^ (mask[at] ?? 0);
  return made;
}

interface ReadBlob {
  /** The ids that the key may have. */
  readonly ids: readonly string[];
  /** In the native form. */
  readonly ciphertext: string;
}

/** Throws `InvalidCiphertextException` for anything else, and for blobs of other tenants. */
export function readBlob(keys: BlobKeys, base64: string): ReadBlob {
  const bytes = fromBase64(base64);
  if (!bytes || bytes[0] !== format || bytes.length <= bodyStart) throw failure('InvalidCiphertextException');
  const epoch = ((bytes[1] ?? 0) << 8) | (bytes[2] ?? 0);
  if (!keys.epochs.includes(epoch)) throw failure('InvalidCiphertextException');
  const mac = keyedHmac(keys.key('header', epoch));
  const tag = bytes.slice(tagStart, nameStart);
  const name = masked(mac, tag, bytes.slice(nameStart, bodyStart));
  const body = bytes.subarray(bodyStart);
  if (!equalBytes(tagOf(mac, epoch, name, body), tag)) throw failure('InvalidCiphertextException');
  const version = new DataView(name.buffer).getUint32(16);
  return { ids: idsOfBytes(name.slice(0, 16)), ciphertext: `vault:v${version}:${toBase64(body)}` };
}
