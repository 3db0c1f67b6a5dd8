// Custody is who can use a ring's keys: its clients alone, to whose public key they are wrapped, or the appliance,
// which holds them and works with them for software that speaks Vault's transit engine. A ring has one of the two for
// ever.
export type Custody = 'client' | 'server';

/** What a tenant lets its new rings have. */
export const custodyPolicies = ['any', 'client'] as const;
export type CustodyPolicy = (typeof custodyPolicies)[number];

/** What the keys of a ring with custody `server` are, in transit's words. */
export const transitTypes = ['aes256-gcm96', 'chacha20-poly1305', 'ed25519', 'ecdsa-p256'] as const;
export type TransitType = (typeof transitTypes)[number];

/** Whether keys of the type encrypt; the others sign. */
export function isCipher(type: TransitType): type is 'aes256-gcm96' | 'chacha20-poly1305' {
  return type === 'aes256-gcm96' || type === 'chacha20-poly1305';
}

/** What ECDSA signs is a hash; Ed25519 signs the message. */
export const transitHashes = ['sha2-224', 'sha2-256', 'sha2-384', 'sha2-512'] as const;
export type TransitHash = (typeof transitHashes)[number];

/** Bytes. */
export const hashLengths: Readonly<Record<TransitHash, number>> = {
  'sha2-224': 28,
  'sha2-256': 32,
  'sha2-384': 48,
  'sha2-512': 64,
};

/** Things that one request may have done to it. */
export const mostTransitItems = 1000;

/** Random nonces of 96 bits: so many messages under one key, and two are the same with less than 2^-32. */
export const messagesPerVersion = 2 ** 32;

/** Why a ring of the one kind is refused where the other is served. */
export function heldByClients(service: 'ks' | 'asym'): string {
  return `the keys of this ring are held by its clients (custody client), so the appliance cannot use them: it is served at /${service}`;
}
export const heldByServer =
  'the keys of this ring are held by the appliance (custody server): it is served at /transit, and to software that speaks Vault transit';
