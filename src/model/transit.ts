// Custody: who can use a ring's keys. Either its clients alone, to whose public key they are wrapped, or the appliance,
// which holds them and uses them for software that speaks Vault's transit engine. A ring's custody never changes.
export type Custody = 'client' | 'server';

/** Custody that a tenant allows its new rings. */
export const custodyPolicies = ['any', 'client'] as const;
export type CustodyPolicy = (typeof custodyPolicies)[number];

/** Key types of rings with custody `server`, by their names in transit. */
export const transitTypes = ['aes256-gcm96', 'chacha20-poly1305', 'ed25519', 'ecdsa-p256'] as const;
export type TransitType = (typeof transitTypes)[number];

/** Whether keys of the type encrypt; the others sign. */
export function isCipher(type: TransitType): type is 'aes256-gcm96' | 'chacha20-poly1305' {
  return type === 'aes256-gcm96' || type === 'chacha20-poly1305';
}

/** Hashes for ECDSA, which signs a hash; Ed25519 signs the message. */
export const transitHashes = ['sha2-224', 'sha2-256', 'sha2-384', 'sha2-512'] as const;
export type TransitHash = (typeof transitHashes)[number];

/** Hash lengths in bytes. */
export const hashLengths: Readonly<Record<TransitHash, number>> = {
  'sha2-224': 28,
  'sha2-256': 32,
  'sha2-384': 48,
  'sha2-512': 64,
};

/** Items in one request. */
export const mostTransitItems = 1000;

/** With random 96-bit nonces, this many messages per key keep the chance of a collision below 2^-32. */
export const messagesPerVersion = 2 ** 32;

/** Why a ring of one kind is refused at the other's endpoints. */
export function heldByClients(service: 'ks' | 'asym'): string {
  return `the keys of this ring are held by its clients (custody client), so the appliance cannot use them: it is served at /${service}`;
}
export const heldByServer =
  'the keys of this ring are held by the appliance (custody server): it is served at /managed-keys, and to software that speaks Vault transit';
