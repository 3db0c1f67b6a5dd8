// Places says up to which record each tenant's activity has arrived at a target. It is kept in the appliance's own
// store, as a setting for each target: so it is sealed, copied and restored with the logs, and after a restore no
// restored record is skipped.
//
//   setting "activity-to <name of the target>" = {"version":1,"places":{"<id of a tenant>":<sequence number>}}
import { KmsError } from '../errors.ts';
import { isCount, isJsonObject, jsonOf } from '../model/json.ts';
import type { TargetPlacesName } from '../store/tables/databases.ts';
import type { Tenants } from './served-tenants.ts';
import type { SystemStore } from './stores.ts';

const version = 1;

export interface PlacesDeps {
  readonly system: SystemStore;
  readonly tenants: Pick<Tenants, 'all'>;
}

export class Places {
  readonly #deps: PlacesDeps;
  readonly #name: TargetPlacesName;
  readonly #places: Map<string, number>;
  #isChanged = false;

  private constructor(deps: PlacesDeps, name: TargetPlacesName, places: Map<string, number>) {
    this.#deps = deps;
    this.#name = name;
    this.#places = places;
  }

  /**
   * The positions for a target, by its name. A new target begins at the current end of every tenant's log, or at its
   * start; later tenants always begin at their start.
   */
  static async open(deps: PlacesDeps, target: string, from: 'end' | 'start'): Promise<Places> {
    const { system, tenants } = deps;
    const name = nameOf(target);
    const known = await system.transaction(({ settings, tenants }) => {
      const text = settings.get(name);
      const ids = new Set(tenants.all().map(({ id }) => id));
      return text === undefined ? undefined : [...parse(text)].filter(([id]) => ids.has(id));
    });
    if (known) return new Places(deps, name, new Map(known));
    const end = ({ record, handle }: (typeof tenants.all)[number]): [string, number] => [
      record.id,
      from === 'start' ? 0 : handle.store.status().activityCount,
    ];
    const places = new Places(deps, name, new Map(tenants.all.map(end)));
    // Before the next record, so that a crash does not move the beginning. If it cannot be written, as on a full disk,
    // the stream reports that and tries again.
    places.#isChanged = true;
    await places.save().catch(() => {});
    return places;
  }

  /** The last record that has arrived; 0 if there is none. */
  of(tenant: string): number {
    return this.#places.get(tenant) ?? 0;
  }

  set(tenant: string, seq: number): void {
    if (this.of(tenant) === seq) return;
    this.#places.set(tenant, seq);
    this.#isChanged = true;
  }

  get isChanged(): boolean {
    return this.#isChanged;
  }

  async save(): Promise<void> {
    if (!this.#isChanged) return;
    this.#isChanged = false;
    const text = write(this.#places);
    await this.#deps.system
      .transaction(({ settings }) => settings.set(this.#name, text))
      .catch((error: unknown) => {
        this.#isChanged = true;
        throw error;
      });
  }
}

/**
 * Sets positions back after logs were restored from a copy: none may be beyond the end of its log, or new records would
 * count as already arrived. `ends` are the logs' ends by tenant id; for the tenants in `lost` everything is sent again.
 */
export async function returnPlaces(
  system: SystemStore,
  ends: ReadonlyMap<string, number>,
  lost: readonly string[] = [],
): Promise<void> {
  await system.transaction(({ settings }) => {
    for (const { name, value } of settings.ofTargets()) {
      const places = parse(value);
      for (const [id, end] of ends) if ((places.get(id) ?? 0) > end) places.set(id, end);
      for (const id of lost) places.delete(id);
      settings.set(name, write(places));
    }
  });
}

function nameOf(target: string): TargetPlacesName {
  return `activity-to ${target}`;
}

function write(places: ReadonlyMap<string, number>): string {
  return JSON.stringify({ version, places: Object.fromEntries(places) });
}

function parse(text: string): Map<string, number> {
  const value = jsonOf(text);
  const found = isJsonObject(value) && value.version === version ? value.places : undefined;
  if (!isJsonObject(found)) {
    throw new KmsError('refused', 'the streamed positions are from a newer version of kms', {
      hint: 'use that version',
    });
  }
  return new Map(Object.entries(found).flatMap(([id, seq]): [string, number][] => (isCount(seq) ? [[id, seq]] : [])));
}
