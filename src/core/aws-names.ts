// Names by which clients of AWS know keys and tenants. A key's id there is its name here if that is a UUID, as of all
// keys that those clients made; or else a UUID with the bytes of its id here. A tenant is an account of twelve digits.
import { toHex, utf8 } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import { idFromBytes, idToBytes } from '../crypto/ulid.ts';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isUuid(text: string): boolean {
  return uuid.test(text);
}

interface NamedKey {
  readonly id: string;
  readonly name: string;
}

/** The id of a managed key there. Not a name that could be the id of another key. */
export function awsIdOf({ id, name }: NamedKey): string {
  return isUuid(name) && idsOfUuid(name).length === 0 ? name : uuidFrom(keyIdBytes(id) ?? new Uint8Array(16));
}

/** 16 bytes as a UUID. */
export function uuidFrom(bytes: Uint8Array): string {
  const hex = toHex(bytes);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** A UUID for a key that has it as its name: no key's id has these bytes. */
export function newUuidName(random: (length: number) => Uint8Array): string {
  const bytes = random(16);
  // An id with these bits would be of the year 6429 or later.
  bytes[0] = (bytes[0] ?? 0) | 0x80;
  return uuidFrom(bytes);
}

/** The bytes of a key's id; keys made as transit rings have ids of another prefix. */
export function keyIdBytes(id: string): Uint8Array | undefined {
  return idToBytes('mkey', id) ?? idToBytes('ring', id);
}

/** The first two bytes of an id made in the year 2527: no clock is later, and most other UUIDs are. */
const latest = 0x1000;

/** The ids that a UUID may stand for; none if its first bytes are no time. */
export function idsOfUuid(text: string): readonly string[] {
  const bytes = Uint8Array.fromHex(text.replaceAll('-', ''));
  return (((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0)) < latest ? idsOfBytes(bytes) : [];
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
