// The journal of a shared store as a checkpoint needs it, on any thread that reaches the engine.
import { KmsError, systemCode } from '../../errors.ts';
import type { CheckpointJournal } from '../checkpoint.ts';
import type { WholeFiles } from '../files.ts';
import { readSnapshot } from '../snapshot.ts';
import { listStoreFiles } from '../store-files.ts';
import { EngineError, type KnownRow, type SharedEngine } from './engine.ts';
import { recoverRows, type SharedPlace, storeIdOf } from './recovery.ts';

export function checkpointRows({ engine, uid, keys }: SharedPlace): CheckpointJournal {
  const dir = storeIdOf(uid);
  let last: KnownRow | undefined;
  const files = filesBehind(engine, uid, () => last);
  return {
    dir,
    keys,
    files,
    async recover(options) {
      const { through } = options;
      try {
        const recovered = await recoverRows({ engine, uid, keys, files }, { ...options, activityCacheBytes: 0 });
        last = recovered.log.at;
        return recovered;
      } catch (error) {
        if (through === undefined) throw error;
        const { snapshots } = await listStoreFiles(engine.files, dir);
        if ((snapshots.at(-1) ?? 0) > through) return undefined;
        throw error;
      }
    },
    // Once the log is trimmed for it, there is no other source.
    async verify(generation) {
      await readSnapshot(engine.files, dir, generation, keys).catch((cause: unknown) => {
        // A failover cut the snapshot off.
        throw systemCode(cause) === 'ENOENT' ? new EngineError('retry', cause) : cause;
      });
    },
  };
}

/** File port that only makes files while the log has the row that `known` returns by then. */
export function filesBehind(engine: SharedEngine, uid: Uint8Array, known: () => KnownRow | undefined): WholeFiles {
  const { files } = engine;
  return {
    list: (dir) => files.list(dir),
    exists: (name) => files.exists(name),
    size: (name) => files.size(name),
    read: (name, most) => files.read(name, most),
    readAt: (name, offset, length) => files.readAt(name, offset, length),
    remove: (name) => files.remove(name),
    replace: (name, bytes) => {
      const row = known();
      if (!row) throw new KmsError('internal', 'a file of a checkpoint before its place in the log is known');
      return engine.replaceBehind(storeIdOf(uid), row, name, bytes);
    },
  };
}
