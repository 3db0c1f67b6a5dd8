// SegmentVerifier checks the closed segments of all activity logs while the appliance serves: now and then whether each
// file exists, often the faulty ones, and all contents in slow passes, on a thread of low priority.
import type { Worker } from 'node:worker_threads';
import { KmsError, systemCode } from '../../errors.ts';
import { segmentPath } from '../../store/activity/segment.ts';
import type { SegmentCheck, Store, VerifySegment } from '../../store/port.ts';
import type { StoreKeys } from '../../store/store-files.ts';
import { sealName } from '../data-dir.ts';
import type { ApplianceEvent } from '../events.ts';
import { startWorker } from '../program-files.ts';
import { endThread } from './ending.ts';
import { answerOf, keysAsData, type SegmentOrder, type SegmentsWork, type WorkAnswerOf } from './jobs.ts';

export interface VerifierSettings {
  /** Milliseconds from the start to the first pass over the contents, and from the start of one pass to the next. */
  readonly firstAfter: number;
  readonly passEvery: number;
  /** Milliseconds between checks of faulty segments, and between checks that every file exists. */
  readonly againEvery: number;
  readonly lookEvery: number;
  /** Minimum speed of a pass in bytes per second; faster if the pass would otherwise outlast its interval. */
  readonly bytesPerSecond: number;
}

const minute = 60_000;
const usual: VerifierSettings = {
  firstAfter: 2 * minute,
  passEvery: 24 * 60 * minute,
  againEvery: minute / 2,
  lookEvery: 10 * minute,
  bytesPerSecond: 256 * 1024,
};

interface VerifierDeps {
  /** The data directory. */
  readonly root: string;
  /** The stores in service now. */
  stores(): readonly Pick<Store<object>, 'segments' | 'status'>[];
  /** Keys of a store, by its name in the seal or the name of its directory. */
  keysFor(name: string): StoreKeys;
  /** Reads a segment outside the data directory; absent if all are in it. */
  read?(path: string, most: number): Promise<Uint8Array>;
  readonly onEvent: ((event: ApplianceEvent) => void) | undefined;
}

export class SegmentVerifier {
  readonly #deps: VerifierDeps;
  readonly #settings: VerifierSettings;
  readonly #closing = new AbortController();
  #thread: Worker | undefined;
  /** Tasks that use the thread. */
  #users = 0;
  #underWay: Promise<unknown>[] = [];
  /** One segment is read at a time. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(deps: VerifierDeps, settings: Partial<VerifierSettings> = {}) {
    this.#deps = deps;
    this.#settings = { ...usual, ...settings };
  }

  start(): void {
    const { firstAfter, passEvery, againEvery, lookEvery } = this.#settings;
    this.#underWay = [
      this.#repeat(firstAfter, passEvery, () => this.#pass()),
      this.#repeat(againEvery, againEvery, () => this.#eachWatched((segments) => this.#again(segments))),
      this.#repeat(lookEvery, lookEvery, () => this.#eachWatched((segments) => segments.look())),
    ];
  }

  /** Checks the faulty segments now, without the usual pauses: they may have been repaired. */
  again(): Promise<void> {
    const goesOn = async (): Promise<boolean> => !this.#closing.signal.aborted;
    return this.#onThread(() => this.#eachWatched((segments) => segments.again(this.#verify, goesOn)));
  }

  /** Stops after the segment being verified. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#endThread();
    await Promise.all(this.#underWay);
  }

  async #repeat(first: number, every: number, run: () => Promise<void>): Promise<void> {
    for (let wait = first; await this.#sleep(wait); ) {
      const began = performance.now();
      await run();
      wait = Math.max(0, every - (performance.now() - began));
    }
  }

  async #eachWatched(run: (segments: Store['segments']) => Promise<void>): Promise<void> {
    for (const { segments } of this.#deps.stores()) {
      if (this.#closing.signal.aborted) return;
      try {
        await run(segments);
      } catch (cause) {
        // A store that was closed, or does not serve now, is reported elsewhere.
        if (cause instanceof KmsError && cause.code === 'unavailable') continue;
        this.#deps.onEvent?.({ level: 'warn', message: 'segments of the activity log could not be verified', cause });
      }
    }
  }

  async #pass(): Promise<void> {
    const { bytesPerSecond, passEvery } = this.#settings;
    const total = this.#deps.stores().reduce((sum, store) => sum + store.status().activityBytes, 0);
    // In four fifths of the interval, since a pass takes more than its pauses.
    const rate = Math.max(bytesPerSecond / 1000, total / (passEvery * 0.8));
    await this.#onThread(() =>
      this.#eachWatched((segments) => segments.pass(this.#verify, (bytes) => this.#sleep(bytes / rate))),
    );
  }

  async #again(segments: Store['segments']): Promise<void> {
    const rate = this.#settings.bytesPerSecond / 1000;
    await this.#onThread(() => segments.again(this.#verify, (bytes) => this.#sleep(bytes / rate)));
  }

  /** Starts the thread with the first order, and ends it after the last task that may give one. */
  async #onThread(run: () => Promise<void>): Promise<void> {
    this.#users++;
    try {
      await run();
    } finally {
      this.#users--;
      if (this.#users === 0) await this.#endThread();
    }
  }

  readonly #verify: VerifySegment = (check) => {
    const mine = this.#turn.then(() => this.#ask(check));
    this.#turn = mine.catch(() => {});
    return mine;
  };

  async #ask(check: SegmentCheck): Promise<string | undefined> {
    if (this.#closing.signal.aborted) throw closed();
    this.#thread ??= startWorker({ kind: 'segments', root: this.#deps.root } satisfies SegmentsWork);
    const thread = this.#thread;
    try {
      const { dir, summary } = check;
      const bytes = await this.#deps.read?.(segmentPath(dir, summary.file), summary.bytes).catch((error: unknown) => {
        // The thread will not find it either, and reports that.
        if (systemCode(error) === 'ENOENT') return undefined;
        throw error;
      });
      const answered = answerOf<WorkAnswerOf<string | undefined>>(thread, 'the segments');
      const keys = keysAsData(this.#deps.keysFor(sealName(dir)));
      thread.postMessage({ check, keys, bytes } satisfies SegmentOrder);
      const answer = await answered;
      if (answer.ok) return answer.result;
      throw new KmsError(answer.code === 'unavailable' ? 'unavailable' : 'internal', answer.message);
    } catch (error) {
      await this.#endThread();
      throw this.#closing.signal.aborted ? closed() : error;
    }
  }

  async #endThread(): Promise<void> {
    const thread = this.#thread;
    this.#thread = undefined;
    if (thread) await endThread(thread);
  }

  /** Returns whether to continue. */
  #sleep(milliseconds: number): Promise<boolean> {
    const { signal } = this.#closing;
    if (signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', wake);
        resolve(!signal.aborted);
      };
      const timer = setTimeout(wake, milliseconds).unref();
      signal.addEventListener('abort', wake);
    });
  }
}

function closed(): KmsError {
  return new KmsError('unavailable', 'the appliance is being closed');
}
