// Counters while the appliance serves: requests by tenant, action, verdict and status, with their durations; and for
// stores the work of writing files: transaction groups, fsyncs, checkpoints. Nothing of a single request is kept, and
// none costs more than a few additions; the rest is computed at a scrape.
import type { Meter } from '../../http/appliance-port.ts';
import type { RequestResult } from '../../http/respond.ts';
import type { Commit } from '../../store/journal.ts';
import type { StoreEvent } from '../../store/port.ts';
import type { TurnMeter } from '../../store/shared/row-turns.ts';

/** Upper bounds of the buckets, ascending; one more bucket takes all greater values. */
type Bounds = readonly number[];

/** In seconds, from half a millisecond, the time of an encrypt, to ten seconds. */
const requestSeconds: Bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Seconds of a disk write. */
const diskSeconds: Bounds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5];
const checkpointSeconds: Bounds = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const groupSizes: Bounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

export class Buckets {
  readonly bounds: Bounds;
  /** Number of values in each bucket, not cumulative. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(bounds: Bounds) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  add(value: number): void {
    const { bounds, counts } = this;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] ?? 0)) at++;
    counts[at] = (counts[at] ?? 0) + 1;
    this.sum += value;
  }
}

/** `none` if nothing was authorized: the endpoint is public, or the request was refused before. */
const verdicts = ['none', 'granted', 'denied'] as const;
type Verdict = (typeof verdicts)[number];

/** Keyrings counted by name; all others are counted together, under a name that no keyring can have. */
export const mostRings = 500;
export const otherRings = '_other';

interface AnswerCount {
  readonly action: string;
  readonly verdict: Verdict;
  readonly status: number;
  readonly count: number;
}

const none: ReadonlyMap<string, never> = new Map<string, never>();

export class RequestCounts implements Meter {
  /** Keyed by tenant, then by action. */
  readonly #tenants = new Map<string, Map<string, ActionCounts>>();
  /** Encrypts by tenant, then by keyring; undefined if they are not counted. */
  readonly #rings: Map<string, Map<string, number>> | undefined;
  /** Successful requests to managed keys by tenant, then by key and dialect, one number for each action. */
  readonly #keys = new Map<string, Map<string, KeyUses>>();
  /** Logins of programs by tenant, then by result. */
  readonly #workloads = new Map<string, Map<string, number>>();
  /** Logins under unknown names, by tenant. */
  readonly #byNobody = new Map<string, number>();

  constructor(countRings: boolean) {
    this.#rings = countRings ? new Map() : undefined;
  }

  route(action: string): (served: RequestResult, milliseconds: number) => void {
    const byTenant = new Map<string, ActionCounts>();
    const rings = action === 'keyring.encrypt' ? this.#rings : undefined;
    const isOfKey = action.startsWith('key.');
    const isWorkload = action === 'workloadLogin';
    return ({ tenant, outcome: { status }, granted, ringname, dialect, byNobody, did, refusedBy }, milliseconds) => {
      if (tenant === undefined) return;
      let counts = byTenant.get(tenant);
      if (!counts) {
        counts = this.#countsOf(tenant, action);
        byTenant.set(tenant, counts);
      }
      counts.add(status, granted, milliseconds);
      if (did) counts.addItems(did);
      if (isOfKey && status === 200) this.#countKey(tenant, action, ringname, dialect);
      if (rings && status === 200 && ringname) countRing(rings, tenant, ringname);
      if (isWorkload) this.#countWorkload(tenant, status < 400 ? 'accepted' : (refusedBy ?? 'other'));
      if (byNobody) this.#byNobody.set(tenant, this.loginsByNobody(tenant) + 1);
    };
  }

  answers(tenant: string): AnswerCount[] {
    return [...(this.#tenants.get(tenant) ?? none)].flatMap(([action, counts]) => counts.answers(action));
  }

  durations(tenant: string): [action: string, buckets: Buckets][] {
    return [...(this.#tenants.get(tenant) ?? none)].map(([action, { seconds }]) => [action, seconds]);
  }

  /** Counts of the actions that do several things in one request. */
  items(tenant: string): [action: string, items: ItemCount][] {
    return [...(this.#tenants.get(tenant) ?? none)].flatMap(([action, { items }]) => (items ? [[action, items]] : []));
  }

  loginsByNobody(tenant: string): number {
    return this.#byNobody.get(tenant) ?? 0;
  }

  /** Undefined if they are not counted. */
  encryptsByRing(tenant: string): ReadonlyMap<string, number> | undefined {
    return this.#rings && (this.#rings.get(tenant) ?? none);
  }

  /** Successful requests to managed keys: `key` is absent if keys are not counted by name. */
  keyUses(tenant: string): readonly KeyUses[] {
    return [...(this.#keys.get(tenant)?.values() ?? [])];
  }

  /** `accepted`, the check that refused the token, or `other`: a brake, a malformed request. */
  workloadLogins(tenant: string): ReadonlyMap<string, number> {
    return this.#workloads.get(tenant) ?? none;
  }

  #countWorkload(tenant: string, result: string): void {
    const results = this.#workloads.get(tenant) ?? new Map<string, number>();
    this.#workloads.set(tenant, results);
    results.set(result, (results.get(result) ?? 0) + 1);
  }

  #countKey(tenant: string, action: string, ringname: string | undefined, dialect = 'native'): void {
    const all = this.#keys.get(tenant) ?? new Map<string, KeyUses>();
    this.#keys.set(tenant, all);
    const key = this.#rings && ringname ? ringname : undefined;
    const name = `${action} ${dialect} ${key ?? ''}`;
    const known = all.get(name);
    if (known) known.count++;
    else if (all.size < mostKeyUses) all.set(name, { action, dialect, key, count: 1 });
    else this.#countOther(all, action, dialect);
  }

  #countOther(all: Map<string, KeyUses>, action: string, dialect: string): void {
    const name = `${action} ${dialect} ${otherRings}`;
    const known = all.get(name) ?? { action, dialect, key: otherRings, count: 0 };
    known.count++;
    all.set(name, known);
  }

  /** Several routes may share one action. */
  #countsOf(tenant: string, action: string): ActionCounts {
    const actions = this.#tenants.get(tenant) ?? new Map<string, ActionCounts>();
    this.#tenants.set(tenant, actions);
    const counts = actions.get(action) ?? new ActionCounts();
    actions.set(action, counts);
    return counts;
  }
}

/** Entries of managed keys by name; further keys are counted together. */
const mostKeyUses = 5 * mostRings;

interface KeyUses {
  readonly action: string;
  readonly dialect: string;
  readonly key: string | undefined;
  count: number;
}

interface ItemCount {
  readonly done: number;
  readonly failed: number;
}

class ActionCounts {
  readonly seconds = new Buckets(requestSeconds);
  items: ItemCount | undefined = undefined;
  /** Counts by status and verdict, combined into one number. */
  readonly #answers = new Map<number, number>();

  add(status: number, granted: boolean | undefined, milliseconds: number): void {
    const answer = status * verdicts.length + (granted === undefined ? 0 : granted ? 1 : 2);
    this.#answers.set(answer, (this.#answers.get(answer) ?? 0) + 1);
    this.seconds.add(milliseconds / 1000);
  }

  addItems(statuses: readonly number[]): void {
    const { done, failed } = this.items ?? { done: 0, failed: 0 };
    const wrong = statuses.reduce((sum, status) => (status < 400 ? sum : sum + 1), 0);
    this.items = { done: done + statuses.length - wrong, failed: failed + wrong };
  }

  answers(action: string): AnswerCount[] {
    return [...this.#answers].map(([answer, count]) => ({
      action,
      verdict: verdicts[answer % verdicts.length] ?? 'none',
      status: Math.floor(answer / verdicts.length),
      count,
    }));
  }
}

function countRing(tenants: Map<string, Map<string, number>>, tenant: string, ring: string): void {
  let rings = tenants.get(tenant);
  if (!rings) {
    rings = new Map();
    tenants.set(tenant, rings);
  }
  const name = rings.size < mostRings || rings.has(ring) ? ring : otherRings;
  rings.set(name, (rings.get(name) ?? 0) + 1);
}

export class StoreCounts {
  readonly commitSeconds = new Buckets(diskSeconds);
  readonly fsyncSeconds = new Buckets(diskSeconds);
  readonly transactions = new Buckets(groupSizes);
  readonly checkpointSeconds = new Buckets(checkpointSeconds);
  checkpoints = 0;
  failedCheckpoints = 0;
  failedWrites = 0;
  /** For a store shared by several nodes; undefined if there are no turns. */
  turns: TurnCounts | undefined;

  commit({ transactions, ms, syncMs }: Commit): void {
    this.commitSeconds.add(ms / 1000);
    this.fsyncSeconds.add(syncMs / 1000);
    this.transactions.add(transactions);
  }

  turnMeter(): TurnCounts {
    this.turns ??= new TurnCounts();
    return this.turns;
  }

  /** Runs and times a checkpoint. */
  async checkpoint<R>(run: () => Promise<R>): Promise<R> {
    const started = performance.now();
    const result = await run();
    this.checkpointSeconds.add((performance.now() - started) / 1000);
    return result;
  }

  event({ kind }: StoreEvent): void {
    if (kind === 'checkpoint') this.checkpoints++;
    else if (kind === 'checkpoint-failed') this.failedCheckpoints++;
    else if (kind === 'write-failed') this.failedWrites++;
  }
}

/** Turns of a shared store on this node. */
export class TurnCounts implements TurnMeter {
  readonly waitSeconds = new Buckets(requestSeconds);
  rows = 0;
  losses = 0;
  branches = 0;

  turn(waited: number, rows: number): void {
    this.waitSeconds.add(waited / 1000);
    this.rows += rows;
  }

  lost(): void {
    this.losses++;
  }

  lostBranch(): void {
    this.branches++;
  }
}
