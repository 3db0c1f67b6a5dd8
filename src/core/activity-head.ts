// A head of the activity log: the place of the last record, signed by the tenant, to be kept where the appliance cannot
// reach it. Format: docs/activity-export.md.

import { fromBase64, fromBase64Url, toBase64, utf8 } from '../crypto/bytes.ts';
import { ed25519FromSpki, ed25519PublicKey, ed25519Sign, ed25519ToSpki, ed25519Verify } from '../crypto/ed25519.ts';
import { invalidField, KmsError } from '../errors.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import { chainStart } from '../store/activity/chain.ts';
import { type Tenant, timestamp } from './context.ts';

const format = 'kms-activity-head-1';

export interface ActivityHead {
  readonly format: typeof format;
  /** The tenant's id. */
  readonly tenant: string;
  /** The last record; 0 when there is none. */
  readonly seq: number;
  /** The chain's hash at that record, base64url. */
  readonly hash: string;
  readonly signedAt: string;
  /** Of the Ed25519 key that signed, base64 SPKI DER. */
  readonly publicKey: string;
  /** Base64. */
  readonly signature: string;
}

type Unsigned = Omit<ActivityHead, 'publicKey' | 'signature'>;

export function signHead({ id, keys }: Tenant, place: { readonly seq: number; readonly hash: string }, now: number) {
  const head: Unsigned = { format, tenant: id, seq: place.seq, hash: place.hash, signedAt: timestamp(now) };
  const seed = keys.key('activity-head');
  const signature = toBase64(ed25519Sign(seed, messageOf(head)));
  return { ...head, publicKey: publicKeyOf(seed), signature } satisfies ActivityHead;
}

/** Whether the head is signed by the key that it names, whosever that is. */
export function isSigned(head: ActivityHead): boolean {
  const key = ed25519FromSpki(fromBase64(head.publicKey) ?? new Uint8Array());
  const signature = fromBase64(head.signature);
  return key !== undefined && signature !== undefined && ed25519Verify(key, messageOf(head), signature);
}

/** Throws `conflict` unless this tenant signed the head. */
export function needOwnHead({ id, keys }: Tenant, head: ActivityHead): void {
  if (head.tenant !== id) throw new KmsError('conflict', `the head is that of another tenant, ${head.tenant}`);
  if (isSigned(head) && publicKeysOf(keys).includes(head.publicKey)) return;
  throw new KmsError('conflict', 'the head was changed: the signature is none of this tenant', {
    hint: 'take the head from where it was kept',
  });
}

/**
 * A head as it came from somewhere: one flat object, each of whose fields has the one form that `signHead` gives it. So
 * strict, since programs of others read heads too, and all must come to one verdict. Throws `invalid` for what is none.
 */
export function parseHead(value: unknown, field: string): ActivityHead {
  const given = typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  const { format: found, tenant, seq, hash, signedAt, publicKey, signature } = given;
  if (
    Object.values(given).some((each) => typeof each === 'object' && each !== null) ||
    found !== format ||
    !isText(tenant, /^[!-~]{1,100}$/) ||
    typeof seq !== 'number' ||
    !Number.isSafeInteger(seq) ||
    seq < 0 ||
    !isText(hash, /^[\w-]{43}$/) ||
    fromBase64Url(hash) === undefined ||
    (seq === chainStart.seq && hash !== chainStart.hash) ||
    !isText(signedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) ||
    !isText(publicKey, /^.{60}$/) ||
    ed25519FromSpki(fromBase64(publicKey) ?? new Uint8Array()) === undefined ||
    !isText(signature, /^.{88}$/) ||
    fromBase64(signature)?.length !== 64
  ) {
    throw invalidField(field, `expected a head of the format ${format}, as \`kms activity head --json\` prints it`);
  }
  return { format, tenant, seq, hash, signedAt, publicKey, signature };
}

function isText(value: unknown, form: RegExp): value is string {
  return typeof value === 'string' && form.test(value);
}

function messageOf({ tenant, seq, hash, signedAt }: Unsigned): Uint8Array {
  return utf8(`${format}\n${tenant}\n${seq}\n${hash}\n${signedAt}\n`);
}

function publicKeyOf(seed: Uint8Array): string {
  return toBase64(ed25519ToSpki(ed25519PublicKey(seed)));
}

/** Those of all tenant keys that are held: an old head was signed with an old one. */
function publicKeysOf(keys: TenantKeys): string[] {
  return keys.epochs.map((epoch) => publicKeyOf(keys.key('activity-head', epoch)));
}
