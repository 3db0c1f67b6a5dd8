// A disk that separates synced data from the rest. At a crash a seeded generator decides which sectors of unsynced
// writes and which unsynced names survive; a failed fsync forgets sectors that reads still show, as operating systems
// do.
import type { Prng } from './prng.ts';

export const sectorLength = 512;

export class Inode {
  /** The content that a reader sees. */
  data: Uint8Array = new Uint8Array(0);
  /** The content that is certainly on the disk. */
  durable: Uint8Array = new Uint8Array(0);
  /** Sectors that a failed fsync gave up: still readable, not written, and not written by a later fsync either. */
  readonly #forgotten = new Set<number>();

  append(bytes: Uint8Array): void {
    this.write(this.data.length, bytes);
  }

  write(start: number, bytes: Uint8Array): void {
    const end = start + bytes.length;
    const grown = new Uint8Array(Math.max(this.data.length, end));
    grown.set(this.data);
    grown.set(bytes, start);
    this.data = grown;
    this.#touch(start, end);
  }

  truncate(size: number): void {
    const cut = new Uint8Array(size);
    cut.set(this.data.subarray(0, size));
    this.#touch(Math.min(size, this.data.length), Math.max(size, this.data.length));
    this.data = cut;
  }

  sync(): void {
    this.durable = this.#mix(this.data.length, (sector) => !this.#forgotten.has(sector));
  }

  /** Writes some sectors and forgets the others. */
  failedSync(prng: Prng): void {
    const written = this.#mix(this.data.length, (sector) => {
      if (this.#forgotten.has(sector)) return false;
      const kept = prng.chance(0.5);
      if (!kept) this.#forgotten.add(sector);
      return kept;
    });
    // The size is written with the last of the data, or not.
    this.durable = prng.chance(0.5) ? written : written.slice(0, this.durable.length);
  }

  /** The file after a crash. */
  afterCrash(prng: Prng): Inode {
    const sizes = [this.durable.length, this.data.length];
    const span = this.data.length - this.durable.length;
    if (span > 0) sizes.push(this.durable.length + prng.int(span));
    const all = prng.pick(['none', 'all', 'some', 'some']);
    const survivor = new Inode();
    survivor.data = this.#mix(prng.pick(sizes), (sector) => {
      if (this.#forgotten.has(sector)) return false;
      return all === 'some' ? prng.chance(0.5) : all === 'all';
    });
    survivor.durable = survivor.data;
    return survivor;
  }

  #touch(start: number, end: number): void {
    for (let sector = Math.floor(start / sectorLength); sector * sectorLength < end; sector++) {
      this.#forgotten.delete(sector);
    }
  }

  /** Mixes newer and durable content by sector, with zeros where neither has any. */
  #mix(size: number, newer: (sector: number) => boolean): Uint8Array {
    const mixed = new Uint8Array(size);
    for (let at = 0; at < size; at += sectorLength) {
      const end = Math.min(size, at + sectorLength);
      const old = this.durable.subarray(at, end);
      const fresh = this.data.subarray(at, end);
      const same = Buffer.compare(old, fresh) === 0;
      mixed.set(same || newer(at / sectorLength) ? fresh : old, at);
    }
    return mixed;
  }
}

type Names = Map<string, Inode>;

/** A change of names in one directory. */
interface Change {
  readonly dir: string;
  apply(names: Names): void;
}

export class SimDisk {
  readonly names: Names;
  readonly #durable: Names;
  #pending: Change[] = [];

  constructor(names: Names = new Map()) {
    this.names = names;
    this.#durable = new Map(names);
  }

  /** Changes names in `dir`; durable only after `syncNames` of `dir`. */
  change(dir: string, apply: Change['apply']): void {
    apply(this.names);
    this.#pending.push({ dir, apply });
  }

  /** Makes changes of names durable, in this directory only. */
  syncNames(dir: string): void {
    for (const { apply } of this.#pending.filter((change) => change.dir === dir)) apply(this.#durable);
    this.#pending = this.#pending.filter((change) => change.dir !== dir);
  }

  get used(): number {
    let sum = 0;
    for (const inode of this.names.values()) sum += inode.data.length;
    return sum;
  }

  /** The disk as the next start finds it. */
  afterCrash(prng: Prng): SimDisk {
    const names = new Map(this.#durable);
    for (const { apply } of this.#pending) if (prng.chance(0.5)) apply(names);
    const survivors = new Map<Inode, Inode>();
    for (const [name, inode] of names) {
      const survivor = survivors.get(inode) ?? inode.afterCrash(prng);
      survivors.set(inode, survivor);
      names.set(name, survivor);
    }
    return new SimDisk(names);
  }
}
