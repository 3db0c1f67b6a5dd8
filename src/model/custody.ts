// Custody: who can use a key. Either its clients alone, to whose public key it is wrapped (KeyRings), or the appliance,
// which holds it and works with it for software that leaves no other choice (managed keys).
export type Custody = 'client' | 'server';

/** Custody that a tenant allows its new keys. */
export const custodyPolicies = ['any', 'client'] as const;
export type CustodyPolicy = (typeof custodyPolicies)[number];

/** Why a key of one kind is refused at the other's endpoints. */
export function heldByClients(service: 'ks' | 'asym'): string {
  return `the keys of this keyring are held by its clients (custody client), so the appliance cannot use them: it is served at /${service}`;
}
export const heldByServer =
  'this is a managed key, held by the appliance (custody server): it is served at /managed-keys, and to software that speaks Vault transit';
