// Records of what was done to the appliance as a whole: each tenant's activity log has them, since each tenant's data depends on it.
import type { World } from '../core/context.ts';
import type { Tenants } from './tenants.ts';

export interface ApplianceActivity {
  readonly action: 'system.unseal' | 'system.seal' | 'system.master' | 'system.backup';
  /** Who: `local` for the administrator at the machine, `network` for whoever unsealed it from elsewhere. */
  readonly keyid: string;
  readonly props: Readonly<Record<string, unknown>>;
}

/** Resolves when the record is durable in the log of every tenant that is served. */
export async function recordInTenants(tenants: Tenants, world: World, activity: ApplianceActivity): Promise<void> {
  await Promise.all(
    tenants.all.map(({ handle }) =>
      handle.store.transaction(async (tx) =>
        tx.record({
          id: world.newId('act'),
          createdAt: world.now(),
          ringname: '',
          validAction: true,
          status: 200,
          ...activity,
          props: { ...activity.props },
        }),
      ),
    ),
  );
}
