// SegmentWatch keeps the known faults of a store's closed segments: it checks each for presence, size and header, has
// the contents verified one by one, and keeps a fault until the file is intact again. It guards no reads: a reader
// verifies every segment itself.
import type { WholeFiles } from '../files.ts';
import type {
  SegmentCheck,
  SegmentProblem,
  SegmentSummary,
  StoreEvent,
  StoreSegments,
  StoreStatus,
  VerifySegment,
} from '../port.ts';
import { type ActivityKeys, SegmentFault, segmentPath } from './segment.ts';
import { ByteCache, readSegmentChain, SegmentReader } from './segment-reader.ts';

/** The owner of the store in service. */
interface WatchedService {
  /** The store in service now; throws while there is none. */
  inService(): Promise<Watched>;
  /** The same after catching up with files that other nodes made and removed; absent if there are no other nodes. */
  upToDate?(): Promise<Watched>;
}

interface Watched {
  readonly uid: Uint8Array;
  readonly activity: { readonly segments: readonly SegmentSummary[] };
}

interface SegmentWatchWorld {
  readonly files: WholeFiles;
  readonly dir: string;
  readonly keys: ActivityKeys;
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly random: (length: number) => Uint8Array;
  readonly onEvent: (event: StoreEvent) => void;
}

/** Number of files checked at the same time. */
const atOnce = 16;
/**
 * With at most this many segments, all are checked before a store opens; with more, until shortly after only for
 * presence.
 */
const lookedAtBefore = 512;
/** Faults that are reported one by one. */
const mostTold = 20;

export class SegmentWatch implements StoreSegments {
  readonly #world: SegmentWatchWorld;
  readonly #service: WatchedService;
  /** By path. */
  readonly #faults = new Map<string, SegmentProblem>();
  /** Paths of the faults reported to the operator. */
  readonly #told = new Set<string>();
  #verified = 0;
  #passedAt: number | undefined;

  constructor(world: SegmentWatchWorld, service: WatchedService) {
    this.#world = world;
    this.#service = service;
  }

  /** The segments' part of the store's status. */
  get status(): Pick<StoreStatus, 'activityFaults' | 'activityVerified' | 'activityVerifiedAt'> {
    return {
      activityFaults: [...this.#faults.values()],
      activityVerified: this.#verified,
      activityVerifiedAt: this.#passedAt,
    };
  }

  /** Before the store serves: missing files are known when this resolves. Checks that fail now are made later. */
  async open({ uid, activity: { segments } }: Watched): Promise<void> {
    const { files, dir } = this.#world;
    const looked = this.#look(uid, segments).catch(() => {});
    if (segments.length <= lookedAtBefore) return void (await looked);
    const there = new Set(await files.list(dir));
    for (const { file } of segments) {
      if (!there.has(file)) this.#note(new SegmentFault(segmentPath(dir, file), 'is missing'));
    }
  }

  async look(): Promise<void> {
    const { uid, segments } = await this.#current();
    // A store that was recovered from its disk may have fewer segments than before.
    const known = new Set(segments.map((summary) => this.#path(summary)));
    for (const path of this.#faults.keys()) if (!known.has(path)) this.#forget(path);
    await this.#look(uid, segments);
  }

  async need(fromSeq: number): Promise<void> {
    const { uid, segments } = await this.#current();
    const needed = segments.filter(({ lastSeq }) => lastSeq >= fromSeq);
    await this.#look(uid, needed);
    for (const summary of needed) {
      const fault = this.#faults.get(this.#path(summary));
      if (fault) throw new SegmentFault(fault.path, fault.problem);
    }
  }

  async again(verify: VerifySegment, pause: (bytes: number) => Promise<boolean>): Promise<void> {
    if (this.#faults.size === 0) return;
    const { uid, segments } = await this.#current();
    for (const summary of segments.filter((each) => this.#faults.has(this.#path(each)))) {
      if ((await this.#look(uid, [summary])) > 0) continue;
      await this.#verify(summary, verify);
      if (!(await pause(summary.bytes))) return;
    }
  }

  async pass(verify: VerifySegment, pause: (bytes: number) => Promise<boolean>): Promise<void> {
    const { segments } = await this.#current();
    this.#verified = 0;
    // Starts at random, so that processes that never live through a whole pass still reach every segment in time.
    const [a = 0, b = 0] = this.#world.random(2);
    const first = Math.floor((segments.length * (a * 256 + b)) / 65_536);
    for (const summary of [...segments.slice(first), ...segments.slice(0, first)]) {
      await this.#verify(summary, verify);
      if (!this.#faults.has(this.#path(summary))) this.#verified++;
      if (!(await pause(summary.bytes))) return;
    }
    this.#passedAt = this.#world.now();
  }

  /**
   * Keeps a fault that a reader met, and returns the error for that reader. If the fault persists, the next look
   * reports it to the operator.
   */
  met(error: unknown): unknown {
    if (error instanceof SegmentFault && !this.#faults.has(error.path)) this.#keep(error);
    return error;
  }

  async #current(): Promise<{ uid: Uint8Array; segments: readonly SegmentSummary[] }> {
    const { uid, activity } = await this.#service.inService();
    return { uid, segments: activity.segments };
  }

  #upToDate(): Promise<Watched> {
    return this.#service.upToDate ? this.#service.upToDate() : this.#service.inService();
  }

  async #isKept({ file }: SegmentSummary): Promise<boolean> {
    return (await this.#current()).segments.some((segment) => segment.file === file);
  }

  /** Returns the number of faults found. */
  async #look(uid: Uint8Array, segments: readonly SegmentSummary[]): Promise<number> {
    const reader = this.#reader(uid);
    const waiting = segments.values();
    let found = 0;
    const lookOn = async (): Promise<void> => {
      for (const summary of waiting) {
        const look = (): Promise<void> => reader.look(summary);
        // A second try: the file and its key may have been replaced in the meantime.
        const fault = (await faultOf(look)) && (await this.#upToDate().then(() => faultOf(look)));
        // No fault if retention has dropped the segment in the meantime.
        if (!fault || !(await this.#isKept(summary))) continue;
        this.#note(fault);
        found++;
      }
    };
    await Promise.all(Array.from({ length: Math.min(atOnce, segments.length) }, lookOn));
    return found;
  }

  async #verify(summary: SegmentSummary, verify: VerifySegment): Promise<void> {
    const { dir } = this.#world;
    const path = this.#path(summary);
    for (let tries = 1; ; tries++) {
      // Throws once the store is closed: a file missing after that means nothing.
      const { uid } = await this.#current();
      if (!(await this.#isKept(summary))) return;
      const problem = await verify({ dir, uid, summary });
      if (problem === undefined) return this.#well(path);
      // Two more tries: the file and its key may have been replaced in the meantime, and then once more.
      if (tries < 3) {
        await this.#upToDate();
        continue;
      }
      // Throws if the cause is not the file: the whole directory is gone.
      const seen = await faultOf(() => this.#reader(uid).look(summary));
      return this.#note(seen ?? new SegmentFault(path, problem));
    }
  }

  #keep({ path, problem }: SegmentFault): void {
    this.#faults.set(path, { path, problem, since: this.#faults.get(path)?.since ?? this.#world.now() });
  }

  #note(fault: SegmentFault): void {
    const { path, problem } = fault;
    const isKnown = this.#told.has(path) && this.#faults.get(path)?.problem === problem;
    this.#keep(fault);
    this.#told.add(path);
    if (isKnown || this.#told.size > mostTold + 1) return;
    if (this.#told.size > mostTold) {
      const message = 'more segments of the activity log are missing or changed; `kms doctor` names each of them';
      this.#world.onEvent({ kind: 'segment-fault', message });
      return;
    }
    const message = `${fault.message}; what needs it is answered 503, everything else goes on; ${fault.hint}`;
    this.#world.onEvent({ kind: 'segment-fault', message, cause: fault });
  }

  /** Returns whether the operator had been told. */
  #forget(path: string): boolean {
    this.#faults.delete(path);
    return this.#told.delete(path);
  }

  #well(path: string): void {
    if (this.#forget(path))
      this.#world.onEvent({ kind: 'segment-well', message: `activity segment ${path} is intact again` });
  }

  #path({ file }: SegmentSummary): string {
    return segmentPath(this.#world.dir, file);
  }

  #reader(uid: Uint8Array): SegmentReader {
    return new SegmentReader({ ...this.#world, uid, cache: new ByteCache(0) });
  }
}

/** Rethrows errors that say nothing about the file. */
async function faultOf(read: () => Promise<void>): Promise<SegmentFault | undefined> {
  try {
    await read();
    return undefined;
  } catch (error) {
    if (error instanceof SegmentFault) return error;
    throw error;
  }
}

/** Why a segment, verified whole, is faulty; undefined if it is not. For a thread of its own. */
export async function problemOfSegment(
  { dir, uid, summary }: SegmentCheck,
  files: Pick<WholeFiles, 'size' | 'read' | 'readAt'>,
  keys: ActivityKeys,
): Promise<string | undefined> {
  const reader = new SegmentReader({ files, dir, keys, uid, cache: new ByteCache(0) });
  const fault = await faultOf(async () => {
    for await (const _ of readSegmentChain(reader, summary));
  });
  return fault?.problem;
}
