// Temporary credentials of clients of AWS: a workload session's token, an access key id made from it, and a secret that
// only the appliance can make from it. Nothing more is stored.
import { toPlainBase32 } from '../../crypto/base32.ts';
import { toBase64, utf8 } from '../../crypto/bytes.ts';
import { hmacSha256, sha256 } from '../../crypto/fast-hash.ts';
import type { TenantKeys } from '../../seal/tenant-keys.ts';

const idPrefix = 'KMST';

/** The access key id of a workload token. */
export function sessionKeyId(token: string): string {
  return idPrefix + toPlainBase32(sha256(utf8(`kms/aws-session-id/1\0${token}`)).slice(0, 10));
}

export function isSessionKeyId(accessKeyId: string): boolean {
  return accessKeyId.startsWith(idPrefix);
}

/** The secret of a workload token under the tenant key of an epoch. */
export function sessionSecret(keys: TenantKeys, token: string, epoch = keys.epoch): string {
  const mac = hmacSha256(keys.key('proof', epoch))(utf8(`kms/aws-session-secret/1\0${token}`));
  return toBase64(mac.slice(0, 30));
}
