// Rollback guard: notices an appliance that was set back. Each answer to a known caller carries the appliance's epoch,
// the tenant's transaction count, which only grows, and the runs of its log, which no other history has. A copy that
// was put back without its owner's knowledge, such as a restored virtual machine, brings back deleted keys and revoked
// credentials.

import { stateHeader } from '../model/names.ts';
import { formatMark, isFork, type Mark, parseMark } from '../model/store-mark.ts';

/** Log position of a tenant of an appliance. */
export interface SeenState extends Mark {
  readonly appliance: string;
  readonly tenant: string;
  /** Increased on purpose by a restore, or by a start that accepts older files. */
  readonly epoch: number;
}

/** Storage of the highest state seen, between runs. Errors of loading count as nothing remembered. */
export interface StateMemory {
  /** All remembered states, of every tenant of every appliance. */
  load(): Promise<readonly SeenState[]>;
  save(state: SeenState): Promise<void>;
}

export interface RollbackWatch {
  /** Await it before the first request: other processes may later remember newer states than its answer has. */
  readonly ready: Promise<unknown>;
  /** Call it with every answer. */
  see(response: Response): Promise<void>;
  /** Saves the highest states seen. */
  save(): Promise<void>;
}

export interface RollbackEvents {
  /** The appliance is older than remembered, or continued from an older state. Called once per run. */
  onOlder(seen: SeenState, remembered: SeenState): void | Promise<void>;
  /** The appliance was restored on purpose since. */
  onNewEpoch?(seen: SeenState, remembered: SeenState): void | Promise<void>;
}

/** Parses the header; undefined for anything else. A value without runs comes from an older version. */
export function parseState(value: string | null): SeenState | undefined {
  const [, appliance, tenant, epoch, rest] =
    /^([0-9a-f]{32})\.([a-z]+_[0-9a-z]{26})\.([0-9]{1,15})\.(.*)$/.exec(value ?? '') ?? [];
  const mark = parseMark(rest ?? '');
  if (appliance === undefined || tenant === undefined || !mark) return undefined;
  return { appliance, tenant, epoch: Number(epoch), ...mark };
}

/** The header's value. */
export function formatState(state: SeenState): string {
  return `${state.appliance}.${state.tenant}.${state.epoch}.${formatMark(state)}`;
}

/** Whether `a` should replace `b`. False within one epoch if the two are from different histories. */
export function isLater(a: SeenState, b: SeenState): boolean {
  return a.epoch > b.epoch || (a.epoch === b.epoch && a.sequence > b.sequence && !isFork(a, b));
}

/** Whether two states of one epoch belong to different histories, whichever is given first. */
function isSplit(a: SeenState, b: SeenState): boolean {
  return a.epoch === b.epoch && isFork(a, b);
}

interface Watched {
  /** State remembered when this run began. */
  readonly before: SeenState | undefined;
  highest: SeenState;
  /** State last saved, by this run or an earlier one. */
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
      // Answers may overtake each other, so a lower number counts only against the state remembered before this run; a
      // different history counts in every answer.
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
