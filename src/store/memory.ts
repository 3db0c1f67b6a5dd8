// What look-ups found, kept as long as it is certainly still so: until its table is written to or a transaction is taken back.
// It spares the hot requests their statements; whoever asks cannot tell that it is there.

/** Entries of a table; one more lets go of them all. Only what exists is kept, so that nobody fills it by asking for nothing. */
const most = 10_000;

export class Memory {
  readonly #tables = new Map<string, Map<string, object>>();

  remember<T extends object>(table: string, key: string, load: () => Promise<T | undefined>): Promise<T | undefined> {
    const known = this.#tables.get(table)?.get(key);
    // Cast: a table file asks for one type under one kind of key.
    return known ? Promise.resolve(known as T) : this.#learn(table, key, load);
  }

  async #learn<T extends object>(
    table: string,
    key: string,
    load: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const found = await load();
    if (!found) return undefined;
    let entries = this.#tables.get(table);
    if (!entries) {
      entries = new Map();
      this.#tables.set(table, entries);
    }
    if (entries.size >= most) entries.clear();
    entries.set(key, found);
    return found;
  }

  /** Something was written to the table. */
  forget(table: string): void {
    this.#tables.get(table)?.clear();
  }

  forgetAll(): void {
    this.#tables.clear();
  }
}
