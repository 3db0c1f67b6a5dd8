// SpaceGuard watches the disk space. When it runs short, writes are refused while reads continue and are recorded, in
// the end out of a reserve: an append or a small file that finds the disk full is retried once the reserve has given
// some back. When space is back, the reserve is filled and writes are accepted again, without a restart.
import { KmsError } from '../errors.ts';
import { type AppendFile, type Files, isFull } from '../store/files.ts';
import { SerialQueue } from '../store/serial-queue.ts';
import { type DiskSpace, diskSpace, freePercent, inUnits, Reserve } from './disk.ts';
import type { ApplianceEvent } from './events.ts';

export interface SpaceSettings {
  /** Size of the reserve, and free bytes required for writes; both less on a small disk. */
  readonly reserve?: number;
  readonly floor?: number;
  /** Milliseconds between two checks of the disk. Absent: one check at the start, and no reserve is made. */
  readonly every?: number;
  readonly look?: () => Promise<DiskSpace>;
}

export interface SpaceStatus {
  readonly freeBytes: number;
  readonly totalBytes: number;
  readonly freePercent: number;
  /** Current size of the reserve. */
  readonly reserveBytes: number;
  /** Why writes are refused; absent if they are not. */
  readonly reason?: string;
}

const usualReserve = 16 * 1024 * 1024;
const usualFloor = 16 * 1024 * 1024;
/** On a small disk, reserve and floor are limited to one part in this many of it. */
const share = 16;
/** Fewer creatable files than this is as bad as no bytes. */
const fewFiles = 16;
/** Minimum number of bytes that the reserve gives back when an append finds the disk full. */
const leastStep = 64 * 1024;
const warnings = [20, 10, 5] as const;

export class SpaceGuard {
  readonly #settings: SpaceSettings;
  readonly #look: () => Promise<DiskSpace>;
  readonly #reserve: Reserve;
  readonly #onEvent: (event: ApplianceEvent) => void;
  #space: DiskSpace | undefined;
  #refusal: KmsError | undefined;
  /** The last threshold warned about. */
  #warned = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  readonly #queue = new SerialQueue();

  private constructor(
    settings: SpaceSettings,
    data: string,
    reserve: Reserve,
    onEvent: (event: ApplianceEvent) => void,
  ) {
    this.#settings = settings;
    this.#look = settings.look ?? (() => diskSpace(data));
    this.#reserve = reserve;
    this.#onEvent = onEvent;
  }

  static async open(
    data: string,
    settings: SpaceSettings,
    onEvent?: (event: ApplianceEvent) => void,
  ): Promise<SpaceGuard> {
    const guard = new SpaceGuard(settings, data, await Reserve.open(data), onEvent ?? (() => {}));
    await guard.#queue.run(() => guard.#judge(false));
    const { every } = settings;
    if (every !== undefined) guard.#timer = setInterval(() => void guard.look(), every).unref();
    return guard;
  }

  /** Why a write is refused now; undefined if it is not. */
  get refusal(): KmsError | undefined {
    return this.#refusal;
  }

  status(): SpaceStatus | undefined {
    const space = this.#space;
    if (!space) return undefined;
    const reason = this.#refusal?.message;
    return {
      freeBytes: space.free,
      totalBytes: space.total,
      freePercent: freePercent(space),
      reserveBytes: this.#reserve.size,
      ...(reason === undefined ? {} : { reason }),
    };
  }

  /** Called when an append finds the disk full. Returns whether the reserve gave some back, so that it may retry. */
  full(bytes: number): Promise<boolean> {
    return this.#queue.run(async () => {
      this.#refuse('there is no space left on the disk');
      const released = await this.#reserve.release(bytes + Math.max(leastStep, Math.ceil(this.#target / 16)));
      if (released > 0 && this.#reserve.size === 0) {
        this.#onEvent({
          level: 'error',
          message: 'the last of the reserve is in use: soon nothing can be recorded any more',
        });
      }
      return released > 0;
    });
  }

  /** Throws unless a file of this size leaves the space that records need. */
  async needFreeSpace(bytes: number): Promise<void> {
    const { free } = await this.#look();
    if (free >= bytes + this.#floor / 4) return;
    throw new KmsError('unavailable', `it needs ${inUnits(bytes)} on the disk, and ${inUnits(free)} are free`);
  }

  /** Checks the disk, and refuses or allows writes accordingly. */
  look(): Promise<void> {
    return this.#queue.run(() => this.#judge(true));
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#queue.idle();
  }

  /** Target size of the reserve in bytes; without `every` the current size. */
  get #target(): number {
    if (this.#settings.every === undefined) return this.#reserve.size;
    return this.#atMostShare(this.#settings.reserve ?? usualReserve);
  }

  get #floor(): number {
    return this.#atMostShare(this.#settings.floor ?? usualFloor);
  }

  #atMostShare(bytes: number): number {
    return Math.min(bytes, Math.floor((this.#space?.total ?? Number.POSITIVE_INFINITY) / share));
  }

  async #judge(mayFill: boolean): Promise<void> {
    let space: DiskSpace;
    try {
      space = await this.#look();
    } catch {
      // If the disk cannot be checked, the next append will show whether there is space.
      return;
    }
    this.#space = space;
    this.#warn(space);
    const missing = Math.max(0, this.#target - this.#reserve.size);
    // Hysteresis, so that a few bytes do not toggle it back and forth.
    const needed = missing + this.#floor * (this.#refusal ? 1.25 : 1);
    if (space.freeFiles !== undefined && space.freeFiles < fewFiles) {
      this.#refuse(`the disk is full: ${space.freeFiles} more files can be made on it`);
    } else if (space.free < needed) {
      const wanted = inUnits(missing + this.#floor);
      this.#refuse(`the disk is nearly full: ${inUnits(space.free)} are free, writing needs ${wanted}`);
    } else if (missing === 0) {
      this.#allow();
    } else if (mayFill) {
      await this.#fill();
    }
  }

  async #fill(): Promise<void> {
    try {
      await this.#reserve.fill(this.#target);
      this.#allow();
    } catch (cause) {
      if (isFull(cause)) this.#refuse('the disk is full: the reserve cannot be made');
      // Only a full disk is a reason to refuse writes.
      else if (this.#refusal) this.#allow();
    }
  }

  #refuse(reason: string): void {
    const hint = 'free space on it; writing then resumes by itself';
    if (!this.#refusal)
      this.#onEvent({ level: 'error', message: `${reason}: writes are refused, reading goes on; ${hint}` });
    this.#refusal = new KmsError('unavailable', reason, { hint, retryAfter: 1 });
  }

  #allow(): void {
    if (!this.#refusal) return;
    this.#refusal = undefined;
    this.#onEvent({ level: 'info', message: 'there is room on the disk again: writes are accepted' });
  }

  #warn(space: DiskSpace): void {
    const percent = freePercent(space);
    const level = warnings.findLast((each) => percent < each);
    if (level !== undefined && level < this.#warned) {
      const message = `the disk is filling up: less than ${level} percent are free, ${inUnits(space.free)}`;
      this.#onEvent({ level: 'warn', message });
      this.#warned = level;
    } else if (percent >= this.#warned + 2) {
      this.#warned = level ?? Number.POSITIVE_INFINITY;
    }
  }
}

/** Gets the bytes that found no space; returns whether to retry. */
type OnFull = (bytes: number) => Promise<boolean>;

export function guardedFiles(files: Files, onFull: OnFull): Files {
  const again = async <R>(bytes: number, step: () => Promise<R>): Promise<R> => {
    for (;;) {
      try {
        return await step();
      } catch (error) {
        if (!isFull(error) || !(await onFull(bytes))) throw error;
      }
    }
  };
  return {
    list: (dir) => files.list(dir),
    exists: (name) => files.exists(name),
    size: (name) => files.size(name),
    read: (name, most) => files.read(name, most),
    readAt: (name, offset, length) => files.readAt(name, offset, length),
    openAppend: async (name, create) =>
      new GuardedAppendFile(await again(0, () => files.openAppend(name, create)), onFull),
    replace: (name, bytes) =>
      bytes instanceof Uint8Array ? again(bytes.length, () => files.replace(name, bytes)) : files.replace(name, bytes),
    remove: (name) => files.remove(name),
    makeDir: (dir) => again(0, () => files.makeDir(dir)),
    removeDir: (dir) => files.removeDir(dir),
    syncDir: (dir) => files.syncDir(dir),
  };
}

class GuardedAppendFile implements AppendFile {
  readonly #file: AppendFile;
  readonly #onFull: OnFull;
  /** Durable bytes, and the pieces appended behind them. */
  #synced: number;
  #pieces: Uint8Array[] = [];

  constructor(file: AppendFile, onFull: OnFull) {
    this.#file = file;
    this.#onFull = onFull;
    this.#synced = file.size;
  }

  get size(): number {
    return this.#file.size;
  }

  append(bytes: Uint8Array, room?: number, behind?: Uint8Array): Promise<void> {
    this.#pieces.push(bytes);
    return this.#file.append(bytes, room, behind).catch((error: unknown) => this.#again(error));
  }

  async sync(): Promise<void> {
    for (;;) {
      try {
        await this.#file.sync();
        break;
      } catch (error) {
        await this.#again(error);
      }
    }
    this.#pieces = [];
    this.#synced = this.#file.size;
  }

  trim(): Promise<void> {
    return this.#file.trim();
  }

  async truncate(size: number): Promise<void> {
    this.#pieces = [];
    await this.#file.truncate(size);
    this.#synced = size;
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  /** Rewrites everything behind the durable part, so that nothing builds on a failed write. */
  async #again(failure: unknown): Promise<void> {
    for (let error = failure; ; ) {
      const length = this.#pieces.reduce((sum, piece) => sum + piece.length, 0);
      if (!isFull(error) || !(await this.#onFull(length))) throw error;
      try {
        await this.#file.truncate(this.#synced);
        for (const piece of this.#pieces) await this.#file.append(piece);
        return;
      } catch (next) {
        error = next;
      }
    }
  }
}
