// Moves a store from a directory to a shared engine, or back: with its id, its transaction count, its runs, by which
// clients recognise it, and its segments byte for byte. It must not be served meanwhile. The source is not changed; the
// copy counts only once both were verified to hold the same.
import { setImmediate } from 'node:timers/promises';
import { toHex } from '../../crypto/bytes.ts';
import { KmsError } from '../../errors.ts';
import { formatMark, type Mark } from '../../model/store-mark.ts';
import type { ActivityLog } from '../activity/activity-log.ts';
import { SegmentFault, segmentPath } from '../activity/segment.ts';
import { problemOfSegment } from '../activity/segment-watch.ts';
import { type CheckedStore, checkRecovered } from '../check.ts';
import { Group, Numbering } from '../commit-group.ts';
import { recoverFiles } from '../file-recovery.ts';
import type { Files, WholeFiles } from '../files.ts';
import { createLog } from '../log-file.ts';
import type { ChainHead, SegmentSummary } from '../port.ts';
import type { LogEnd, Recovered } from '../recover.ts';
import { writeSnapshot } from '../snapshot.ts';
import type { State } from '../state.ts';
import { nonceLength, type StoreKeys } from '../store-files.ts';
import type { Migration } from '../tables/migrations.ts';
import { filesBehind } from './checkpoint.ts';
import type { LogRow, SharedEngine } from './engine.ts';
import { recoverRows, storeIdOf } from './recovery.ts';
import { appendRule, sealRow } from './row.ts';

/** The facts that must be equal in the source and the copy. */
export interface HeldStore
  extends Pick<CheckedStore, 'uid' | 'mark' | 'schema' | 'tables' | 'activity' | 'dropped' | 'faults'> {}

interface TransferWorld {
  readonly engine: SharedEngine;
  readonly keys: StoreKeys;
  readonly wasm: Uint8Array;
  readonly migrations: readonly Migration[];
  readonly random: (length: number) => Uint8Array;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** The directory of an embedded store. */
interface StorePlace {
  readonly files: Files;
  readonly dir: string;
}

/** Bytes of a segment copied at once. */
const pieceLength = 256 * 1024;

/** The part of a store sent to the engine ahead of the store: closed activity segments, verified on both sides. */
interface Sent {
  /** The end of the last one; undefined if there is none. */
  readonly upTo: ChainHead | undefined;
  /** Epoch of the newest key at that time: segments resealed since are sent again. */
  readonly epoch: number;
}

/**
 * Copies the segments of a store that may be served meanwhile, except those already sent `before`. Throws `corrupt` if
 * a copy does not verify.
 */
export async function sendSegments(world: TransferWorld, from: StorePlace, before?: Sent): Promise<Sent> {
  const { engine, keys } = world;
  const { epoch } = keys;
  const { state, activity, uid } = await recoverFiles({ ...from, keys }, world);
  state.close();
  const known = before?.epoch === epoch ? (before.upTo?.seq ?? 0) : 0;
  const to = { files: engine.files, dir: storeIdOf(uid) };
  const { segments } = activity;
  for (const summary of segments.filter(({ lastSeq }) => lastSeq > known)) {
    await copySegments([summary], from, to);
    const problem = await problemOfSegment({ dir: to.dir, uid, summary }, engine.files, keys);
    if (problem !== undefined) throw new SegmentFault(segmentPath(to.dir, summary.file), problem);
  }
  const last = segments.at(-1);
  return { epoch, upTo: last && { seq: last.lastSeq, hash: last.hash } };
}

/**
 * Copies the store in a directory to a store of the engine named `name`, and returns the facts common to both. The copy
 * is not whole until `finish` is called. Segments `sent` a moment ago are neither copied nor verified again. Throws
 * `refused` if there is a store of its id or name, `corrupt` if the source does not verify.
 */
export async function importStore(
  world: TransferWorld,
  from: StorePlace,
  name: string,
  sent?: Sent,
): Promise<HeldStore> {
  const { engine, keys, random, at } = world;
  const source = { ...from, keys };
  const recovered = await recoverFiles(source, world);
  const { state, activity, uid, log } = recovered;
  try {
    const mark = { sequence: log.place.sequence, runs: log.place.runs };
    const rest = await restOf(engine, keys, { uid, activity }, sent);
    const held = await heldOf(recovered, source, rest.from);
    needSegments(held);
    // Continues the numbering: no snapshot of the store has had this number.
    const before = { seq: log.generation, tag: log.place.chain, ...mark };
    const row = sealRow({ uid, keys }, before, new Group(new Numbering()).payload(false), random(nonceLength));
    await engine.create(storeIdOf(uid), appendRule, row, name);
    const files = filesBehind(engine, uid, () => row);
    const to = { files, dir: storeIdOf(uid) };
    await copySegments(rest.segments, from, to);
    await writeImage({ ...to, keys, random }, { uid, mark, row, state, activity, at });
    return agreed(held, await sharedHeld(world, uid, rest.from), name);
  } finally {
    state.close();
  }
}

/**
 * Copies a store of the engine to an embedded store in a directory without one, and returns the facts common to both.
 * Throws `corrupt` if the source does not verify.
 */
export async function exportStore(world: TransferWorld, uid: Uint8Array, to: StorePlace): Promise<HeldStore> {
  const { engine, keys, random, at } = world;
  const { files, dir } = to;
  const recovered = await recoverRows({ engine, keys, uid }, world);
  const { state, activity, log: end } = recovered;
  try {
    const { seq, tag: chain, sequence, runs } = end.at;
    const mark = { sequence, runs };
    const source = { files: engine.files, dir: storeIdOf(uid), keys };
    const held = await heldOf(recovered, source);
    needSegments(held);
    await files.makeDir(dir);
    await copySegments(activity.segments, source, to);
    const context = { ...to, keys, random };
    const log = await createLog(context, { uid, generation: seq + 1, sequence, chain, runs });
    await log.close();
    // Last: the snapshot's presence says that the store exists.
    await writeImage(context, { uid, mark, row: { seq, tag: chain }, state, activity, at });
    const copy = { ...to, keys };
    return agreed(held, await closing(await recoverFiles(copy, world), copy), dir);
  } finally {
    state.close();
  }
}

/** The segments still to be copied, and the record after which to verify. */
async function restOf(
  engine: SharedEngine,
  { epoch }: StoreKeys,
  { uid, activity: { segments } }: { readonly uid: Uint8Array; readonly activity: ActivityLog },
  sent: Sent | undefined,
): Promise<{ readonly segments: readonly SegmentSummary[]; readonly from: ChainHead | undefined }> {
  const last = segments.findIndex(({ lastSeq, hash }) => lastSeq === sent?.upTo?.seq && hash === sent.upTo.hash);
  if (sent?.epoch !== epoch || last < 0) return { segments, from: undefined };
  const there = new Set(await engine.files.list(storeIdOf(uid)));
  // Sent files may have been removed since.
  const isThere = segments.slice(0, last + 1).every(({ file }) => there.has(file));
  return isThere ? { segments: segments.slice(last + 1), from: sent.upTo } : { segments, from: undefined };
}

interface Image {
  readonly uid: Uint8Array;
  readonly mark: Mark;
  /** The row that the snapshot covers. */
  readonly row: Pick<LogRow, 'seq' | 'tag'>;
  readonly state: State;
  readonly activity: ActivityLog;
  readonly at: number;
}

async function writeImage(
  context: Parameters<typeof writeSnapshot>[0],
  { uid, mark: { sequence, runs }, row, state, activity, at }: Image,
): Promise<void> {
  const { segments, head, dropped } = activity;
  const header = { uid, generation: row.seq, sequence, chain: row.tag };
  const content = { schema: state.schemaVersion, savedAt: at, runs, activity: { segments, head, dropped } };
  await writeSnapshot(context, header, content, activity.tailLines(), state.image());
}

async function copySegments(
  segments: readonly SegmentSummary[],
  from: { readonly files: WholeFiles; readonly dir: string },
  to: { readonly files: WholeFiles; readonly dir: string },
): Promise<void> {
  for (const { file, bytes } of segments) {
    await to.files.replace(segmentPath(to.dir, file), pieces(from.files, segmentPath(from.dir, file), bytes));
  }
}

async function* pieces(files: WholeFiles, name: string, bytes: number): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < bytes; offset += pieceLength) {
    yield await files.readAt(name, offset, Math.min(pieceLength, bytes - offset));
    await setImmediate();
  }
}

/** Verifies a store of the engine; of its activity log only the records after `from`, if given. */
export async function sharedHeld(world: TransferWorld, uid: Uint8Array, from?: ChainHead): Promise<HeldStore> {
  const { engine, keys } = world;
  const place = { files: engine.files, dir: storeIdOf(uid), keys };
  return closing(await recoverRows({ engine, keys, uid }, world), place, from);
}

type Place = Parameters<typeof checkRecovered>[1];

/** The facts of a recovered store, which is closed then. */
async function closing(recovered: Recovered<LogEnd>, place: Place, from?: ChainHead): Promise<HeldStore> {
  return heldOf(recovered, place, from).finally(() => recovered.state.close());
}

async function heldOf(recovered: Recovered<LogEnd>, place: Place, from?: ChainHead): Promise<HeldStore> {
  const { uid, log } = recovered;
  const { sequence, runs } = log.place;
  return { uid: toHex(uid), mark: { sequence, runs }, ...(await checkRecovered(recovered, place, from)) };
}

/** A shared store never trims its log for a snapshot that names a missing segment. */
function needSegments({ faults: [fault] }: HeldStore): void {
  if (fault) throw fault;
}

/** Throws `corrupt` if the two differ. */
function agreed(here: HeldStore, there: HeldStore, name: string): HeldStore {
  needSegments(there);
  const [a, b] = [here, there].map(({ uid, mark, schema, tables, activity, dropped }) => {
    return JSON.stringify([uid, formatMark(mark), schema, tables, activity, dropped ?? null]);
  });
  if (a === b) return there;
  throw new KmsError('corrupt', `${name}: what arrived is not what was sent`, {
    hint: 'nothing of it is served; the source is as it was: try again',
  });
}
