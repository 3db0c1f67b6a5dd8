// Unsealing is recorded before the appliance serves: without the record it stays sealed.
import type { UnsealStep } from '../api/system.ts';
import type { HeldDirectory } from '../cluster/held-directory.ts';
import { localCaller } from '../core/credential.ts';
import { KmsError } from '../errors.ts';
import type { ApplianceActivity } from '../storage/served-tenants.ts';
import type { Unsealed } from './open-appliance.ts';

export type UnsealedBy = Pick<ApplianceActivity, 'keyid' | 'address'>;

export const byLocal: UnsealedBy = { keyid: localCaller.id };

/**
 * Opens the appliance, records the unsealing, and ends a seal on purpose. If that fails, it is closed again and stays
 * sealed.
 */
export async function unsealRecorded(
  { node, seal }: HeldDirectory,
  opening: () => Promise<Unsealed>,
  record: UnsealedBy & Pick<ApplianceActivity, 'props'>,
): Promise<Unsealed> {
  const onPurpose = await seal.isOnPurpose();
  if (node) node.isUnsealing = true;
  try {
    const open = await opening();
    try {
      await open.record({ action: 'system.unseal', ...record });
      if (onPurpose) await seal.endOnPurpose();
    } catch (cause) {
      if (onPurpose) await seal.sealOnPurpose().catch(() => {});
      await open.close();
      throw new KmsError('unavailable', 'unsealing could not be recorded; the appliance stays sealed', { cause });
    }
    return open;
  } finally {
    if (node) node.isUnsealing = false;
  }
}

/** Discarding other people's shares, or looking for the key, is only for the local administrator. */
export function localOnly({ reset }: UnsealStep): KmsError {
  const what = reset ? 'forgetting the shares that were given (reset)' : 'looking for the key again (retry)';
  return new KmsError('forbidden', `${what} is for the local socket: run \`kms unseal\` on the machine itself`);
}
