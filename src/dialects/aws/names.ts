// Names of keys as clients of AWS KMS have them. A key's id there is its name here if that is a UUID, as of all keys
// that those clients made; or else a UUID with the bytes of its id here. Its other names are aliases there.

import { toHex, utf8 } from '../../crypto/bytes.ts';
import { sha256 } from '../../crypto/hash.ts';
import { idFromBytes, idToBytes } from '../../crypto/ulid.ts';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isUuid(text: string): boolean {
  return uuid.test(text);
}

interface NamedKey {
  readonly id: string;
  readonly name: string;
}

/** The id of a managed key there. */
export function awsIdOf({ id, name }: NamedKey): string {
  return isUuid(name) ? name : uuidOf(id);
}

/** The UUID of an id; keys made as transit rings have ids of another prefix. */
function uuidOf(id: string): string {
  return uuidFrom(keyIdBytes(id) ?? new Uint8Array(16));
}

/** 16 bytes as a UUID. */
export function uuidFrom(bytes: Uint8Array): string {
  const hex = toHex(bytes);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

export function keyIdBytes(id: string): Uint8Array | undefined {
  return idToBytes('mkey', id) ?? idToBytes('ring', id);
}

/** The ids that a UUID may stand for. */
function idsOf(text: string): readonly string[] {
  return idsOfBytes(Uint8Array.fromHex(text.replaceAll('-', '')));
}

export function idsOfBytes(bytes: Uint8Array): readonly string[] {
  return [idFromBytes('mkey', bytes), idFromBytes('ring', bytes)];
}

/** Twelve digits that stand for a tenant. */
export function accountOf(tenantId: string): string {
  const bytes = sha256(utf8(`kms/aws-account/1\0${tenantId}`));
  const number = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0) % 1_000_000_000_000n;
  return number.toString().padStart(12, '0');
}

export interface Place {
  readonly account: string;
  readonly region: string;
}

/** @param awsId from `awsIdOf`. */
export function keyArn({ account, region }: Place, awsId: string): string {
  return `arn:aws:kms:${region}:${account}:key/${awsId}`;
}

export function aliasArn({ account, region }: Place, name: string): string {
  return `arn:aws:kms:${region}:${account}:alias/${name}`;
}

/** A key as a request names it. */
type KeyRef =
  /** The name that it may have, and the ids. */
  | { readonly uuid: string; readonly ids: readonly string[] }
  | { readonly alias: string }
  /** The type of the error, and its message. */
  | { readonly error: string; readonly message: string };

/** Reads an id, an ARN, or where they are taken an alias. */
export function keyRefOf(text: string, { account, region }: Place, takesAlias: boolean): KeyRef {
  const unknown = { error: 'NotFoundException', message: `Invalid keyId '${text.slice(0, 256)}'` };
  if (text.startsWith('arn:')) {
    const [, , service, inRegion, ofAccount, ...rest] = text.split(':');
    if (service !== 'kms' || rest.length !== 1) {
      return { error: 'InvalidArnException', message: `Invalid arn ${text.slice(0, 256)}` };
    }
    const [resource = ''] = rest;
    if (inRegion !== region || ofAccount !== account) return unknown;
    return keyRefOf(resource.startsWith('key/') ? resource.slice(4) : resource, { account, region }, takesAlias);
  }
  if (text.startsWith('alias/')) return takesAlias ? { alias: text.slice(6) } : unknown;
  if (uuid.test(text)) return { uuid: text.toLowerCase(), ids: idsOf(text.toLowerCase()) };
  return unknown;
}
