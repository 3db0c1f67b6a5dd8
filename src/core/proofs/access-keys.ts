// AWS access keys: an id that says whose they are to scanners of secrets, and a secret that the appliance must be able
// to read, since each request is checked under it. It is sealed under a key of the tenant, bound to its id and API key.
import { openXChaCha, sealXChaCha } from '../../crypto/aead.ts';
import { toPlainBase32 } from '../../crypto/base32.ts';
import { concatBytes, fromBase64, fromUtf8, toBase64, utf8 } from '../../crypto/bytes.ts';
import { KmsError } from '../../errors.ts';
import type { TenantKeys } from '../../seal/tenant-keys.ts';
import type { Store } from '../../store/port.ts';
import type { KnownProof, SealedSecret } from '../../store/tables/proofs.ts';
import type { World } from '../context.ts';

/** Not `AKIA`, which others' scanners take for keys of AWS. */
const idPrefix = 'KMSA';
/** Characters of a secret access key. */
const secretLength = 40;
const nonceLength = 24;
const format = 1;
/** Secrets resealed per transaction. */
const resealedAtOnce = 200;

interface AccessKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sealed: SealedSecret;
}

export function newAccessKey(keys: TenantKeys, apikeyId: string, random: World['random']): AccessKey {
  // Ten bytes are sixteen digits.
  const accessKeyId = idPrefix + toPlainBase32(random(10));
  const secretAccessKey = toBase64(random((secretLength * 3) / 4));
  return { accessKeyId, secretAccessKey, sealed: sealed(keys, apikeyId, accessKeyId, secretAccessKey, random) };
}

/** The secret of an access key. Throws `corrupt` if it was sealed for another, or altered. */
export function secretOf(keys: TenantKeys, { apikeyId, subject = '', sealed: stored }: KnownProof): string {
  const bytes = stored && fromBase64(stored.text);
  const key = stored && keys.key('proof', stored.epoch);
  const open =
    bytes?.[0] === format && key
      ? openXChaCha(key, bytes.slice(1, 1 + nonceLength), bytes.subarray(1 + nonceLength), place(apikeyId, subject))
      : undefined;
  const secret = open && fromUtf8(open);
  if (secret === undefined) throw new KmsError('corrupt', 'the stored secret of an access key was altered');
  return secret;
}

function sealed(
  keys: TenantKeys,
  apikeyId: string,
  accessKeyId: string,
  secret: string,
  random: World['random'],
): SealedSecret {
  const { epoch } = keys;
  const nonce = random(nonceLength);
  const box = sealXChaCha(keys.key('proof', epoch), nonce, utf8(secret), place(apikeyId, accessKeyId));
  return { epoch, text: toBase64(concatBytes(Uint8Array.of(format), nonce, box)) };
}

function place(apikeyId: string, accessKeyId: string): Uint8Array {
  return utf8(`kms/access-key/1\0${apikeyId}\0${accessKeyId}`);
}

/** Reseals all secrets under the tenant's newest epoch, so that older ones can go. */
export async function resealAccessKeys(store: Store, keys: TenantKeys, random: World['random']): Promise<void> {
  for (let left = true; left; ) {
    left = await store.transaction(({ proofs }) => {
      const found = proofs.sealedBefore(keys.epoch, resealedAtOnce);
      for (const proof of found) {
        const { id, apikeyId, subject = '' } = proof;
        proofs.reseal(id, sealed(keys, apikeyId, subject, secretOf(keys, proof), random));
      }
      return found.length > 0;
    });
  }
}
