// What was read from segments, kept within a budget of bytes; what was used longest ago goes first.

interface Entry {
  readonly value: unknown;
  readonly cost: number;
}

export class ByteCache {
  readonly #budget: number;
  readonly #entries = new Map<string, Entry>();
  #used = 0;

  constructor(budget: number) {
    this.#budget = budget;
  }

  get used(): number {
    return this.#used;
  }

  /** The value under `name`, which the caller knows the type of by the name. */
  get<T>(name: string): T | undefined {
    const entry = this.#entries.get(name);
    if (!entry) return undefined;
    // A Map remembers the order of insertion: the first is the one used longest ago.
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    return entry.value as T;
  }

  set(name: string, value: unknown, cost: number): void {
    this.#drop(name);
    if (cost > this.#budget) return;
    this.#entries.set(name, { value, cost });
    this.#used += cost;
    for (const oldest of this.#entries.keys()) {
      if (this.#used <= this.#budget) return;
      this.#drop(oldest);
    }
  }

  delete(name: string): void {
    this.#drop(name);
  }

  #drop(name: string): void {
    const entry = this.#entries.get(name);
    if (!entry) return;
    this.#entries.delete(name);
    this.#used -= entry.cost;
  }
}
