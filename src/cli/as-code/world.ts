// World is the objects of an appliance, as far as the caller may see them, read once for a plan. A caller who may not
// list a kind may still see single objects of it.
import type { KindName } from '../../api/configuration.ts';
import type { Desk, Found, Wanted } from './kind.ts';
import { kinds } from './kind-table.ts';
import { ifAllowed, isHidden } from './kinds/account.ts';
import { inParallel } from './parallel.ts';
import { throwWaiting, waitsAs } from './waiting.ts';

/** An object of a file, beside that of the appliance. */
export interface Sight {
  /** Undefined if there is none, or the caller cannot see it. */
  readonly found: Found | undefined;
  readonly isUnseen: boolean;
  /** Several that the name means, if it does not mean one. */
  readonly twins: readonly Found[];
  /** Why fields that the file names cannot be seen. */
  readonly hidden?: string;
}

export class World {
  readonly #desk: Desk;
  /** Objects by kind; undefined for kinds that the caller may not list. */
  readonly #lists = new Map<KindName, readonly Found[] | undefined>();
  readonly #byKey = new Map<KindName, ReadonlyMap<string, readonly Found[]>>();

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /** Reads these kinds. */
  async read(names: Iterable<KindName>): Promise<void> {
    const reads = await Promise.allSettled(
      [...new Set(names)].map(async (name) => {
        const list = await ifAllowed(this.#desk.list(name));
        this.#lists.set(name, list === 'unseen' ? undefined : list);
        if (list === 'unseen') return;
        this.#byKey.set(
          name,
          Map.groupBy(list, (found) => kinds[name].nameKey(found.name)),
        );
      }),
    );
    const failures = reads.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
    const [failure] = failures.filter((reason) => waitsAs(reason).length === 0);
    if (failure !== undefined) throw failure;
    throwWaiting(failures);
  }

  /** All objects of a kind that was read; empty if the caller may not list them. */
  all(name: KindName): readonly Found[] {
    return this.#lists.get(name) ?? [];
  }

  /** Whether all objects of the kind are known. */
  isListed(name: KindName): boolean {
    return this.#lists.get(name) !== undefined;
  }

  /** Looks for each of the objects, with the fields that its file has. */
  sights(wanted: readonly Wanted[]): Promise<readonly Sight[]> {
    return inParallel(wanted, (each) => this.#sight(each));
  }

  async #sight({ kind: name, name: own, fields }: Wanted): Promise<Sight> {
    const kind = kinds[name];
    const listed = this.#byKey.get(name)?.get(kind.nameKey(own)) ?? [];
    if (listed.length > 1) return { found: undefined, isUnseen: false, twins: listed };
    let [found] = listed;
    if (!this.isListed(name)) {
      const answer = kind.find ? await ifAllowed(kind.find(this.#desk, own)) : 'unseen';
      if (answer === 'unseen') return { found: undefined, isUnseen: true, twins: [] };
      found = answer;
    }
    const common = { isUnseen: false, twins: [] };
    if (!found || !kind.detail) return { found, ...common };
    try {
      return { found: await kind.detail(this.#desk, found, fields), ...common };
    } catch (error) {
      if (!isHidden(error)) throw error;
      return { found, ...common, hidden: error.message };
    }
  }
}

/** The object with all fields that the caller may see: a change of any of them since is noticed. */
export async function wholeOf(desk: Desk, kind: KindName, found: Found): Promise<Found> {
  const whole = await ifAllowed(kinds[kind].detail?.(desk, found, 'all') ?? Promise.resolve(found));
  return whole === 'unseen' ? found : whole;
}
