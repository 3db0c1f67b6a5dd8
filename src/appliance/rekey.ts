// New keys for a tenant while it serves: a tenant key of the next epoch, every file rewritten under it, and the old key
// reduced to reading hashes, headers, cursors and signatures that are outside. Each step is durable before the next; if
// cut off, the next start continues.
import { activityRecord } from '../core/activity.ts';
import { expireCoded } from '../core/approval-ends.ts';
import type { World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import { resealManagedKeys } from '../core/key-versions.ts';
import { resealAccessKeys } from '../core/proofs/access-keys.ts';
import { resealTangPairs } from '../core/tang.ts';
import type { SealKeeper } from '../custody/seal-keeper.ts';
import { KmsError } from '../errors.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import { type ServedTenant, type Tenants, tenantThing } from '../storage/served-tenants.ts';
import type { Store } from '../store/port.ts';

interface RekeyResult {
  /** Epoch of the tenant key now in use. */
  readonly epoch: number;
  /** Whether no file needs an older key. */
  readonly complete: boolean;
}

interface RekeyStep {
  readonly seal: SealKeeper;
  /** The store's name in the seal. */
  readonly dir: string;
  readonly store: Pick<Store<object>, 'reseal'>;
  /** Rewraps values sealed within the database under the newest key. */
  readonly resealKeys: () => Promise<void>;
}

/** Whether files may still be under an older key. */
export function isUnfinished(seal: SealKeeper, dir: string): boolean {
  return seal.current.epochsOf(dir).filter(({ retired }) => !retired).length > 1;
}

/** Rewrites the files under the newest key, and retires keys that no file needs. */
export async function finishRekey({ seal, dir, store, resealKeys }: RekeyStep): Promise<RekeyResult> {
  const needed = await store.reseal();
  // From here on all writes use the newest key.
  await resealKeys();
  const epochs = seal.current.epochsOf(dir);
  const newest = epochs.at(-1)?.epoch ?? 0;
  const unneeded = epochs.filter(({ epoch, retired }) => !retired && epoch < newest && !needed.includes(epoch));
  if (unneeded.length > 0) {
    await seal.change((current) => unneeded.reduce((next, { epoch }) => next.withRetiredEpoch(dir, epoch), current));
  }
  return { epoch: newest, complete: !isUnfinished(seal, dir) };
}

interface RekeyDeps {
  readonly seal: SealKeeper;
  readonly tenants: Tenants;
  readonly world: World;
  readonly onEvent: ((event: ApplianceEvent) => void) | undefined;
}

export class Rekeying {
  readonly #deps: RekeyDeps;
  /** By tenant id. */
  readonly #underWay = new Map<string, Promise<RekeyResult>>();

  constructor(deps: RekeyDeps) {
    this.#deps = deps;
  }

  /** Resolves when all is done. An unfinished rekey is completed instead of starting another: its key is new enough. */
  async rekey(nameOrId: string): Promise<RekeyResult & { readonly tenant: string }> {
    const { tenants, seal } = this.#deps;
    const wanted = nameOrId.toLowerCase();
    const served = tenants.all.find(({ record: { id, name } }) => id === wanted || name.toLowerCase() === wanted);
    if (!served) throw new KmsError('not-found', 'there is no such tenant');
    const { id, name, dir } = served.record;
    const begin = async (): Promise<RekeyResult> => {
      await this.#record(served);
      if (!isUnfinished(seal, dir)) await seal.change((current) => current.withNextEpoch(dir));
      return finishRekey(this.#stepOf(served));
    };
    return { tenant: name, ...(await this.#once(id, begin)) };
  }

  /** Continues, in the background, rekeys cut off by a stop or a crash. */
  resume(): void {
    const { tenants, seal, onEvent } = this.#deps;
    for (const served of tenants.all) {
      const { id, name, dir } = served.record;
      if (!isUnfinished(seal, dir)) continue;
      this.#once(id, () => finishRekey(this.#stepOf(served))).then(
        () => onEvent?.({ level: 'info', message: `the files of the tenant ${name} are under its new key now` }),
        (cause: unknown) =>
          onEvent?.({ level: 'warn', message: `the tenant ${name} has files under an old key still`, cause }),
      );
    }
  }

  #stepOf({ record: { dir }, handle: { store, tenant } }: ServedTenant): RekeyStep {
    const { seal, world } = this.#deps;
    const resealKeys = async (): Promise<void> => {
      await resealManagedKeys(store, tenant.keys, world.random);
      await resealTangPairs(store, tenant.keys, world.random);
      await resealAccessKeys(store, tenant.keys, world.random);
      await store.transaction((tx) => expireCoded({ tx, world }));
    };
    return { seal, dir, store, resealKeys };
  }

  #once(id: string, run: () => Promise<RekeyResult>): Promise<RekeyResult> {
    const known = this.#underWay.get(id);
    if (known) return known;
    const mine = run().finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, mine);
    return mine;
  }

  /** Recorded before the change: if it cannot be recorded, it is not done. */
  async #record({ record, handle }: ServedTenant): Promise<void> {
    const { world } = this.#deps;
    const epoch = handle.tenant.keys.epoch;
    await handle.store.transaction((tx) =>
      tx.record(
        activityRecord(world, {
          keyid: localCaller.id,
          action: 'system.tenant',
          props: { operation: 'rekey', name: record.name, epoch },
          deed: { object: tenantThing(record) },
        }),
      ),
    );
  }
}
