// Notices an appliance that was set back: each answer to a known caller says which life of the appliance it comes from and how many
// transactions that tenant has behind it, both of which only grow. A copy that was put back behind its owner's back, such as a restored
// virtual machine, has deleted keys and revoked credentials in it.

/** How far a tenant of an appliance is. */
export interface SeenState {
  readonly appliance: string;
  readonly tenant: string;
  /** A restore begins a new one, on purpose. */
  readonly epoch: number;
  /** Transactions. */
  readonly sequence: number;
}

/** Where the highest that was seen is kept between runs. What it throws is taken for nothing remembered. */
export interface StateMemory {
  load(appliance: string, tenant: string): Promise<SeenState | undefined>;
  save(state: SeenState): Promise<void>;
}

export interface RollbackWatch {
  /** To be called with every answer. */
  see(response: Response): Promise<void>;
  /** Keeps what was seen. */
  save(): Promise<void>;
}

export interface RollbackEvents {
  /** The appliance is older than it was: called once a run. */
  onOlder(seen: SeenState, remembered: SeenState): void | Promise<void>;
  /** It was restored on purpose since. */
  onNewEpoch?(seen: SeenState, remembered: SeenState): void | Promise<void>;
}

export const stateHeader = 'Kms-State';

/** The value of the header; undefined for anything else. */
export function parseState(value: string | null): SeenState | undefined {
  const [, appliance, tenant, epoch, sequence] =
    /^([0-9a-f]{32})\.([a-z]+_[0-9a-z]{26})\.([0-9]{1,15})\.([0-9]{1,15})$/.exec(value ?? '') ?? [];
  if (appliance === undefined || tenant === undefined) return undefined;
  return { appliance, tenant, epoch: Number(epoch), sequence: Number(sequence) };
}

function isAfter(a: SeenState, b: SeenState): boolean {
  return a.epoch > b.epoch || (a.epoch === b.epoch && a.sequence > b.sequence);
}

interface Watched {
  /** What was remembered when this run first met it. */
  readonly before: SeenState | undefined;
  highest: SeenState;
  told: boolean;
}

export function rollbackWatch(memory: StateMemory, events: RollbackEvents): RollbackWatch {
  const known = new Map<string, Promise<Watched>>();

  async function meet(seen: SeenState): Promise<Watched> {
    const before = await memory.load(seen.appliance, seen.tenant).catch(() => undefined);
    if (before && seen.epoch > before.epoch) await events.onNewEpoch?.(seen, before);
    return { before, highest: before && isAfter(before, seen) ? before : seen, told: false };
  }

  return {
    async see(response) {
      const seen = parseState(response.headers.get(stateHeader));
      if (!seen) return;
      const name = `${seen.appliance}.${seen.tenant}`;
      const met = known.get(name) ?? meet(seen);
      known.set(name, met);
      const watched = await met;
      if (isAfter(seen, watched.highest)) watched.highest = seen;
      // Answers may overtake each other, so only what was remembered before this run tells.
      if (!watched.before || !isAfter(watched.before, seen) || watched.told) return;
      watched.told = true;
      await events.onOlder(seen, watched.before);
    },
    async save() {
      for (const met of known.values()) {
        const { before, highest } = await met;
        if (!before || isAfter(highest, before)) await memory.save(highest).catch(() => undefined);
      }
    },
  };
}
