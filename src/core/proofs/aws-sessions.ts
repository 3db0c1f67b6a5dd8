// Temporary credentials of clients of AWS: a workload session's token, an access key id made from it, and a secret that
// is made from the token and from a salt that the session's row alone holds. No key of the tenant has a part in it, so
// that the credentials survive `kms tenant rekey` as the token does; and who reads the token on its way, or the row at
// rest, cannot sign. The token alone is no credential.
import { toPlainBase32 } from '../../crypto/base32.ts';
import { fromBase64, toBase64, utf8 } from '../../crypto/bytes.ts';
import { hmacSha256, sha256 } from '../../crypto/fast-hash.ts';
import { hashSecret } from '../../crypto/secrets.ts';
import { KmsError } from '../../errors.ts';
import { isJsonObject } from '../../model/json.ts';
import type { Transaction } from '../../store/port.ts';
import type { WorkloadSession } from '../../store/tables/workload-sessions.ts';
import type { World } from '../context.ts';

const idPrefix = 'KMST';
const saltLength = 32;

/** The access key id of a workload token. */
export function sessionKeyId(token: string): string {
  return idPrefix + toPlainBase32(sha256(utf8(`kms/aws-session-id/1\0${token}`)).slice(0, 10));
}

export function isSessionKeyId(accessKeyId: string): boolean {
  return accessKeyId.startsWith(idPrefix);
}

/** The role that a session was asked for, and the name that its program gave it. */
export interface AwsSession {
  readonly role: string;
  readonly name: string;
}

/** Makes the session of a new workload token one for clients of AWS, and returns its secret. */
export function openAwsSession(
  { workloadSessions }: Pick<Transaction, 'workloadSessions'>,
  token: string,
  { role, name }: AwsSession,
  random: World['random'],
): string {
  const tokenHash = hashSecret(token);
  const session = workloadSessions.byTokenHash(tokenHash);
  if (!session) throw new KmsError('internal', 'expected the session that the login opened');
  const salt = random(saltLength);
  workloadSessions.setDetails(tokenHash, { ...session.details, aws: { salt: toBase64(salt), role, name } });
  return secretFrom(salt, token);
}

/** The secret of a session; undefined if it was not opened by a client of AWS, or by an earlier version. */
export function sessionSecret({ details }: WorkloadSession, token: string): string | undefined {
  const salt = isJsonObject(details.aws) ? fromBase64(String(details.aws.salt)) : undefined;
  return salt?.length === saltLength ? secretFrom(salt, token) : undefined;
}

export function awsSessionOf({ details }: WorkloadSession): AwsSession | undefined {
  if (!isJsonObject(details.aws)) return undefined;
  return { role: String(details.aws.role), name: String(details.aws.name) };
}

function secretFrom(salt: Uint8Array, token: string): string {
  const mac = hmacSha256(salt)(utf8(`kms/aws-session-secret/2\0${token}`));
  return toBase64(mac.slice(0, 30));
}
