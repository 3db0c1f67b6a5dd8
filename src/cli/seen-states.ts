// What this machine remembers of the appliances that it talked to, in files below $XDG_STATE_HOME/kms, and what it says
// when one of them comes back older than it was.
import { readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  formatState,
  isLater,
  parseState,
  type RollbackWatch,
  rollbackWatch,
  type SeenState,
  type StateMemory,
} from '../client/rollback.ts';
import { type Io, pathFrom, say } from './io.ts';
import { visible } from './text.ts';

export function watchRollbacks(io: Io): RollbackWatch {
  const dir = directoryOf(io);
  return rollbackWatch(dir === undefined ? noMemory : fileMemory(dir), {
    onOlder: (seen, remembered) =>
      say(
        io,
        visible(
          `WARNING: the appliance ${seen.appliance} was set back: it is at transaction ${seen.sequence} of epoch ${seen.epoch}, ` +
            `${howItWas(seen, remembered)}; deleted keys and revoked credentials may be alive again; ask whoever runs it ` +
            '(a `kms restore` would have begun a new epoch); ' +
            `if that was a restore on trial, remove ${join(dir ?? '', nameOf(remembered))}`,
        ),
      ),
    onNewEpoch: (seen) =>
      say(
        io,
        visible(
          `the appliance ${seen.appliance} was restored from a copy, or went on from older files on purpose, ` +
            'since it was last used from here',
        ),
      ),
  });
}

function howItWas(seen: SeenState, { sequence, epoch }: SeenState): string {
  const was = `at ${sequence} of epoch ${epoch} when last used from here`;
  const isLess = seen.epoch < epoch || (seen.epoch === epoch && seen.sequence < sequence);
  return isLess ? `and was ${was}` : `in another history than the one that was ${was}`;
}

/** Where there is no place to remember anything, everything is seen for the first time. */
const noMemory: StateMemory = { load: async () => [], save: async () => undefined };

function directoryOf(io: Io): string | undefined {
  try {
    const { XDG_STATE_HOME } = io.env;
    const base = XDG_STATE_HOME ? pathFrom(io, XDG_STATE_HOME) : join(io.home, '.local', 'state');
    return join(base, 'kms', 'seen');
  } catch {
    return undefined;
  }
}

/** One file for each tenant of each appliance: `<appliance>.<tenant>`, holding what the header said. */
function fileMemory(dir: string): StateMemory {
  const read = async (name: string): Promise<SeenState | undefined> => {
    const state = parseState((await readFile(join(dir, name), 'utf8').catch(() => '')).trim());
    return state && nameOf(state) === name ? state : undefined;
  };
  return {
    async load() {
      const states = await Promise.all((await readdir(dir)).map(read));
      return states.filter((state) => state !== undefined);
    },
    async save(state) {
      const { makeDirs } = await import('../appliance/data-dir.ts');
      await makeDirs(dir);
      // Another command may have seen more meanwhile.
      const now = await read(nameOf(state));
      if (now && !isLater(state, now)) return;
      const file = join(dir, nameOf(state));
      const draft = `${file}.${Math.random().toString(36).slice(2)}.tmp`;
      await writeFile(draft, `${formatState(state)}\n`, { mode: 0o600 });
      await rename(draft, file);
    },
  };
}

function nameOf({ appliance, tenant }: SeenState): string {
  return `${appliance}.${tenant}`;
}
