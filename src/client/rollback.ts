// Notices an appliance that was set back: each answer to a known caller says which life of the appliance it comes from,
// how many transactions that tenant has behind it, which only grow, and which runs of its log they stand in, which no
// other history has. A copy that was put back behind its owner's back, such as a restored virtual machine, has deleted
// keys and revoked credentials in it.

import { stateHeader } from '../model/names.ts';
import { formatMark, isFork, type Mark, parseMark } from '../model/store-mark.ts';

/** How far a tenant of an appliance is. */
export interface SeenState extends Mark {
  readonly appliance: string;
  readonly tenant: string;
  /** A restore begins a new one, on purpose, and so does a start that accepts older files. */
  readonly epoch: number;
}

/** Where the highest that was seen is kept between runs. What it throws is taken for nothing remembered. */
export interface StateMemory {
  /** All that is remembered, of every tenant of every appliance. */
  load(): Promise<readonly SeenState[]>;
  save(state: SeenState): Promise<void>;
}

export interface RollbackWatch {
  /** To be waited for before the first request: what others remember meanwhile may be later than its answer. */
  readonly ready: Promise<unknown>;
  /** To be called with every answer. */
  see(response: Response): Promise<void>;
  /** Keeps what was seen. */
  save(): Promise<void>;
}

export interface RollbackEvents {
  /** The appliance is older than it was, or went on from an older state: called once a run. */
  onOlder(seen: SeenState, remembered: SeenState): void | Promise<void>;
  /** It was restored on purpose since. */
  onNewEpoch?(seen: SeenState, remembered: SeenState): void | Promise<void>;
}

/** The value of the header; undefined for anything else. Without runs it is one that an earlier appliance gave. */
export function parseState(value: string | null): SeenState | undefined {
  const [, appliance, tenant, epoch, rest] =
    /^([0-9a-f]{32})\.([a-z]+_[0-9a-z]{26})\.([0-9]{1,15})\.(.*)$/.exec(value ?? '') ?? [];
  const mark = parseMark(rest ?? '');
  if (appliance === undefined || tenant === undefined || !mark) return undefined;
  return { appliance, tenant, epoch: Number(epoch), ...mark };
}

/** As the header has it. */
export function formatState(state: SeenState): string {
  return `${state.appliance}.${state.tenant}.${state.epoch}.${formatMark(state)}`;
}

/** Whether it is the one to remember. One of the same epoch that stands in another history is not. */
export function isLater(a: SeenState, b: SeenState): boolean {
  return a.epoch > b.epoch || (a.epoch === b.epoch && a.sequence > b.sequence && !isFork(a, b));
}

/** Whether no one life of the appliance gave both, in whatever order. */
function isSplit(a: SeenState, b: SeenState): boolean {
  return a.epoch === b.epoch && isFork(a, b);
}

interface Watched {
  /** What was remembered when this run began. */
  readonly before: SeenState | undefined;
  highest: SeenState;
  /** What was kept last, by this run or before it. */
  kept: SeenState | undefined;
  told: boolean;
}

export function rollbackWatch(memory: StateMemory, events: RollbackEvents): RollbackWatch {
  const known = new Map<string, Promise<Watched>>();
  const ready = memory.load().catch(() => []);

  async function meet(seen: SeenState): Promise<Watched> {
    const remembered = await ready;
    const before = remembered.find(({ appliance, tenant }) => appliance === seen.appliance && tenant === seen.tenant);
    if (before && seen.epoch > before.epoch) await events.onNewEpoch?.(seen, before);
    return { before, highest: before && !isLater(seen, before) ? before : seen, kept: before, told: false };
  }

  return {
    ready,
    async see(response) {
      const seen = parseState(response.headers.get(stateHeader));
      if (!seen) return;
      const name = `${seen.appliance}.${seen.tenant}`;
      const met = known.get(name) ?? meet(seen);
      known.set(name, met);
      const watched = await met;
      const { before, highest } = watched;
      if (isLater(seen, highest)) watched.highest = seen;
      // Answers may overtake each other, so of numbers only what was remembered before this run tells; of histories
      // each answer does.
      const older = [
        before && isBehind(seen, before) ? before : undefined,
        isSplit(seen, highest) ? highest : undefined,
      ];
      const remembered = older.find((each) => each !== undefined);
      if (!remembered || watched.told) return;
      watched.told = true;
      await events.onOlder(seen, remembered);
    },
    async save() {
      for (const met of known.values()) {
        const watched = await met;
        const { kept, highest } = watched;
        if (kept && !isLater(highest, kept)) continue;
        await memory.save(highest).then(
          () => {
            watched.kept = highest;
          },
          () => undefined,
        );
      }
    },
  };
}

function isBehind(seen: SeenState, before: SeenState): boolean {
  return seen.epoch < before.epoch || (seen.epoch === before.epoch && seen.sequence < before.sequence);
}
