// New keys for a tenant, while it serves: a tenant key of the next epoch, every file brought under it, and the old key
// reduced to what reads hashes, headers, cursors and signatures that are outside. Each step is durable before the next;
// cut off, the next start goes on.
import { activityRecord } from '../core/activity.ts';
import type { World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import { resealTangPairs } from '../core/tang.ts';
import { resealTransitKeys } from '../core/transit-rings.ts';
import type { SealKeeper } from '../custody/seal-keeper.ts';
import { KmsError } from '../errors.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import { type ServedTenant, type Tenants, tenantThing } from '../storage/served-tenants.ts';
import type { Store } from '../store/port.ts';

interface RekeyResult {
  /** Of the tenant key that is used from now on. */
  readonly epoch: number;
  /** Whether no file needs an older one. */
  readonly complete: boolean;
}

interface RekeyStep {
  readonly seal: SealKeeper;
  /** As the seal calls the store. */
  readonly dir: string;
  readonly store: Pick<Store<object>, 'reseal'>;
  /** Brings what is sealed within the database under the newest key. */
  readonly resealKeys: () => Promise<void>;
}

/** Whether files may still be under an older key. */
export function isUnfinished(seal: SealKeeper, dir: string): boolean {
  return seal.current.epochsOf(dir).filter(({ retired }) => !retired).length > 1;
}

/** Brings the files under the newest key, and retires the keys that none of them needs. */
export async function finishRekey({ seal, dir, store, resealKeys }: RekeyStep): Promise<RekeyResult> {
  const needed = (await store.reseal?.()) ?? [];
  // From here on nobody writes under an older key any more.
  await resealKeys();
  const epochs = seal.current.epochsOf(dir);
  const newest = epochs.at(-1)?.epoch ?? 0;
  const unneeded = epochs.filter(({ epoch, retired }) => !retired && epoch < newest && !needed.includes(epoch));
  if (unneeded.length > 0 && store.reseal) {
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
  /** By the tenant's id. */
  readonly #underWay = new Map<string, Promise<RekeyResult>>();

  constructor(deps: RekeyDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves when all is done. One that was cut off is finished instead of another one begun: its key is new enough.
   */
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

  /** Goes on, in the background, with what a stop or a crash cut off. */
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
      await resealTransitKeys(store, tenant.keys, world.random);
      await resealTangPairs(store, tenant.keys, world.random);
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

  /** Before the change itself: what cannot be recorded is not done. */
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
