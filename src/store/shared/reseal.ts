// Reseals a shared store under a new key while its nodes serve: a snapshot under the newest key replaces all rows
// before it, then the segments are resealed. A node whose position goes with those rows recovers from that snapshot.
import { epochsOfSegments, resealSegments } from '../activity/resealing.ts';
import type { SegmentSummary } from '../port.ts';
import type { StoreKeys } from '../store-files.ts';
import { filesBehind } from './checkpoint.ts';
import type { KnownRow, SharedEngine } from './engine.ts';
import type { SharedLive } from './live.ts';
import { newestSnapshot, storeIdOf } from './recovery.ts';

interface ResealWorld {
  readonly engine: SharedEngine;
  readonly uid: Uint8Array;
  readonly keys: StoreKeys;
  /** The store in service; throws while there is none. */
  serving(): Promise<SharedLive<object>>;
  /** Writes a snapshot, after an empty row under the newest key, removes all rows before it and returns its row. */
  renew(): Promise<KnownRow>;
  /** Waits a moment. Throws once the store is closed. */
  pause(): Promise<void>;
}

/** Attempts: a node that does not know of the key yet may append a row under the old one in between. */
const rounds = 3;
const rowsAtOnce = 256;

/**
 * Returns the key epochs that a recovery still needs: only the newest, unless a newer one came meanwhile or a node
 * still uses an old one.
 */
export async function resealShared(world: ResealWorld): Promise<readonly number[]> {
  const { engine, uid, keys, serving, renew, pause } = world;
  const dir = storeIdOf(uid);
  const free = async (): Promise<void> => {
    while (await engine.isHeld(dir)) await pause();
  };
  const isKept = async ({ file }: SegmentSummary): Promise<boolean> =>
    (await serving()).activity.segments.some((segment) => segment.file === file);
  for (let round = 1; ; round++) {
    await free();
    const row = await renew();
    const { activity } = await serving();
    const { segments } = activity;
    const files = filesBehind(engine, uid, () => row);
    const resealed = { files, dir, keys, uid, segments, isKept, free };
    await resealSegments(resealed);
    // A copy under way may include old versions of the files.
    await free();
    const found = await epochsOfSegments(resealed);
    const snapshot = await newestSnapshot(world, () => true);
    if (snapshot) found.add(snapshot.header.epoch);
    for (const epoch of await epochsOfRows(engine, dir)) found.add(epoch);
    if (found.size === 1 || round === rounds) return [...found].sort((a, b) => a - b);
  }
}

async function epochsOfRows(engine: SharedEngine, store: string): Promise<Set<number>> {
  const found = new Set<number>();
  for (let from = 1; ; ) {
    const rows = await engine.rows(store, from, rowsAtOnce);
    for (const { epoch, seq } of rows) {
      found.add(epoch);
      from = seq + 1;
    }
    if (rows.length < rowsAtOnce) return found;
  }
}
