// A hold on the files of a shared store, for copying them: while it stands in the database, no node removes any. It
// runs out by itself, so that a dead node blocks no other, and is renewed as long as its own node lives.
import { equalBytes, toHex } from '../../crypto/bytes.ts';
import { KmsError, systemCode } from '../../errors.ts';
import { segmentPath } from '../activity/segment.ts';
import type { CheckpointJob, CheckpointResult } from '../checkpoint.ts';
import { defaultLimits } from '../journal.ts';
import { logHeaderLength, sealLogHeader } from '../log-format.ts';
import type { StoreHold } from '../port.ts';
import { headerLength, logName, nonceLength, type StoreKeys, snapshotName } from '../store-files.ts';
import { EngineError, type SharedEngine } from './engine.ts';
import { storeIdOf } from './recovery.ts';

interface HoldWorld {
  readonly engine: SharedEngine;
  readonly uid: Uint8Array;
  readonly keys: StoreKeys;
  readonly random: (length: number) => Uint8Array;
  readonly later: (milliseconds: number, run: () => void) => void;
  /** Milliseconds after which a hold runs out if it is not renewed. */
  readonly holdMs: number;
}

/** Bytes that tell a file from a later one of the same name: a header and the first nonce. */
const knownBy = headerLength + nonceLength;

interface HeldAtRest extends HoldWorld {
  readonly runCheckpoint: (job: CheckpointJob) => Promise<CheckpointResult | undefined>;
}

/** Holds a store that is not in service, in a snapshot of all its rows. */
export async function holdAtRest(world: HeldAtRest, dir: string, counted: boolean): Promise<StoreHold> {
  const hold = await SharedHold.begin(world);
  try {
    const { segmentRecords } = defaultLimits;
    const made = await world.runCheckpoint({ at: Date.now(), segmentRecords, counted });
    // Another node serves it after all.
    if (!made) throw new EngineError('retry');
    return hold.filesOf(made, dir);
  } catch (error) {
    hold.release();
    throw error;
  }
}

/** The error for files that a failover, or a hold that ran out, removed during the copy. */
function changed(name: string, cause?: unknown): KmsError {
  return new KmsError('unavailable', `${name}: the file was replaced while it was copied`, {
    hint: 'try again',
    cause,
  });
}

export class SharedHold {
  readonly #world: HoldWorld;
  readonly #store: string;
  readonly #holder: string;
  #isOver = false;

  private constructor(world: HoldWorld) {
    this.#world = world;
    this.#store = storeIdOf(world.uid);
    this.#holder = toHex(world.random(16));
  }

  /** From now on no file of the store is removed. */
  static async begin(world: HoldWorld): Promise<SharedHold> {
    const hold = new SharedHold(world);
    await world.engine.hold(hold.#store, hold.#holder, world.holdMs, true);
    hold.#prolongLater();
    return hold;
  }

  #prolongLater(): void {
    const { later, holdMs } = this.#world;
    later(holdMs / 4, () => {
      if (this.#isOver) return;
      // A failed renewal may work the next time; whether the hold still stands is checked when a file is missing.
      this.#prolong().catch(() => {});
      this.#prolongLater();
    });
  }

  /** Returns false if the hold had run out. */
  #prolong(): Promise<boolean> {
    const { engine, holdMs } = this.#world;
    return engine.hold(this.#store, this.#holder, holdMs, false);
  }

  release(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    // If this fails, the hold runs out.
    this.#world.engine.letGo(this.#store, this.#holder).catch(() => {});
  }

  /**
   * The files of a checkpoint made under this hold, as those of an embedded store in the directory `dir`: the snapshot
   * is followed by a log without records.
   */
  filesOf(made: CheckpointResult, dir: string): StoreHold {
    const { uid, keys, random } = this.#world;
    const { generation, sequence, chain, segments, snapshotBytes, activity, tables } = made;
    const next = generation + 1;
    const { epoch } = keys;
    const header = { uid, generation: next, sequence, chain, epoch };
    const log = sealLogHeader(keys.key('log', epoch), random(nonceLength), header);
    const files = [
      { name: snapshotName(dir, generation), bytes: snapshotBytes },
      ...segments.map(({ file, bytes }) => ({ name: segmentPath(dir, file), bytes })),
      { name: logName(dir, next), bytes: logHeaderLength },
    ];
    return {
      uid,
      sequence,
      snapshot: generation,
      log: { generation: next, offset: logHeaderLength },
      files,
      activity,
      tables,
      source: this.#source(dir, logName(dir, next), log),
      release: () => this.release(),
    };
  }

  #source(dir: string, log: string, bytesOfLog: Uint8Array): StoreHold['source'] {
    const { files } = this.#world.engine;
    const own = (name: string): string => `${this.#store}${name.slice(dir.length)}`;
    /** The beginning of each file at its first read. */
    const beginnings = new Map<string, Uint8Array>();
    return {
      size: async (name) => (name === log ? bytesOfLog.length : this.#heldFile(name, () => files.size(own(name)))),
      readAt: async (name, offset, length) => {
        if (name === log) return bytesOfLog.slice(offset, offset + length);
        return this.#heldFile(name, async () => {
          const bytes = await files.readAt(own(name), offset, length);
          const now = offset === 0 && length >= knownBy ? bytes : await files.readAt(own(name), 0, knownBy);
          const beginning = beginnings.get(name) ?? now.slice(0, knownBy);
          beginnings.set(name, beginning);
          if (!equalBytes(beginning, now.subarray(0, knownBy))) throw changed(name);
          return bytes;
        });
      },
    };
  }

  /** A missing file is only an error of its own if the hold still stands. */
  async #heldFile<R>(name: string, read: () => Promise<R>): Promise<R> {
    try {
      return await read();
    } catch (error) {
      if (systemCode(error) !== 'ENOENT' || (await this.#prolong())) throw error;
      throw changed(name, error);
    }
  }
}
