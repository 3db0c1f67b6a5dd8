// Turns of logs in a PostgreSQL: a transaction that has the lock of a store's row, of which as much as can be is sent
// in one message. Connections are few, and taken for a turn or two at a time.
import type { Client, QueryResult } from 'pg';
import { KmsError } from '../../errors.ts';
import { EngineError, type Lane, type LogRow, rowsInTurn, systemName, type TurnEnd, type TurnStart } from './engine.ts';
import { faultOf, hasWarned, historyOf, isRefusal } from './postgres-connections.ts';
import { milliseconds } from './postgres-control.ts';

/** Connections of a node for the turns of its tenants: one is used for a trip or two at a time. */
const mostLanes = 8;

export const insertRow = 'INSERT INTO kms_log (store, seq, epoch, tag, sealed) VALUES ($1, $2, $3, $4, $5)';

/** Connections of lanes, or of jobs, each used by one at a time: so many at most, whoever else wants one waits. */
export class LaneConnections {
  readonly #connect: () => Promise<Client>;
  readonly #most: number;
  readonly #idle = new Set<Client>();
  readonly #waiting: (() => void)[] = [];
  #used = 0;

  constructor(connect: () => Promise<Client>, most = mostLanes) {
    this.#connect = connect;
    this.#most = most;
  }

  async take(): Promise<Client> {
    if (this.#used >= this.#most) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#used++;
    try {
      const [idle] = this.#idle;
      if (!idle) return await this.#open();
      this.#idle.delete(idle);
      return idle;
    } catch (error) {
      this.#pass();
      throw error;
    }
  }

  async #open(): Promise<Client> {
    const client = await this.#connect();
    for (const event of ['error', 'end'] as const) client.on(event, () => this.#idle.delete(client));
    return client;
  }

  give(client: Client): void {
    this.#idle.add(client);
    this.#pass();
  }

  /** One that failed ends; those that nobody uses are looked at no longer either. */
  drop(client: Client): void {
    client.end().catch(() => {});
    this.end();
    this.#pass();
  }

  /** To whoever waits, or to nobody. */
  #pass(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#used--;
  }

  /** Those that nobody uses. */
  end(): void {
    for (const client of this.#idle) client.end().catch(() => {});
    this.#idle.clear();
  }
}

export class PostgresLane implements Lane {
  readonly #connections: LaneConnections;
  readonly #store: string;
  /** While it has a turn, or asks for one. */
  #client: Client | undefined;
  readonly #isOwn: boolean;

  constructor(connections: LaneConnections, store: string, isOwn: boolean) {
    this.#connections = connections;
    this.#store = store;
    this.#isOwn = isOwn;
  }

  async begin(from: number): Promise<TurnStart> {
    try {
      this.#client ??= await this.#connections.take();
      return await this.#begin(this.#client, from);
    } catch (error) {
      this.#drop();
      throw faultOf(error);
    }
  }

  /** One message: the answers come together. */
  async #begin(client: Client, from: number): Promise<TurnStart> {
    const store = this.#store;
    const lock = 'SELECT protocol FROM kms_store WHERE store = $1 FOR UPDATE';
    // What all stores go by stands in each row: a statement of its own would cost more.
    const read = `SELECT seq, epoch, tag, CASE WHEN seq > $2 THEN sealed END AS sealed,
      ${milliseconds} AS now, (SELECT version FROM kms_seal) AS seal_version, (SELECT sealed FROM kms_seal) AS is_sealed, (
        SELECT max(seq) FROM kms_log WHERE store = (SELECT store FROM kms_store WHERE name = '${systemName}')
      ) AS system_seq
      FROM kms_log WHERE store = $1 AND seq >= $2 ORDER BY seq LIMIT ${rowsInTurn + 2}`;
    const [, locked, found] = await together([
      client.query('BEGIN'),
      client.query({ name: 'kms-lock', text: lock, values: [store] }),
      // Another statement than the one that waited: it sees what was committed meanwhile.
      client.query({ name: 'kms-read', text: read, values: [store, from] }),
    ]);
    const [of] = locked?.rows ?? [];
    const [control] = found?.rows ?? [];
    const rows = (found?.rows ?? []).map(rowOf);
    if (!of) throw new KmsError('not-found', `no store ${store} in the shared database`);
    const behind = rows.filter(({ seq }) => seq > from);
    return {
      tag: rows.find(({ seq }) => seq === from)?.tag,
      behind: behind.slice(0, rowsInTurn),
      hasMore: behind.length > rowsInTurn,
      protocol: of.protocol,
      now: control ? Number(control.now) : undefined,
      control: {
        sealVersion: control?.seal_version ?? 0,
        isSealed: control?.is_sealed ?? false,
        systemSeq: Number(control?.system_seq ?? 0),
      },
      history: historyOf(client),
    };
  }

  end(row: LogRow | undefined, again: number | undefined): TurnEnd {
    const client = this.#client;
    if (!client) return { committed: Promise.reject(new EngineError('unreachable')), next: undefined };
    const queries: Promise<QueryResult>[] = [];
    if (row) {
      const { seq, epoch, tag, sealed } = row;
      const values = [this.#store, seq, epoch, Buffer.from(tag), Buffer.from(sealed)];
      queries.push(client.query({ name: 'kms-insert', text: insertRow, values }));
    }
    queries.push(client.query('COMMIT'));
    const next = again === undefined ? undefined : this.#begin(client, again);
    next?.catch(() => {});
    const committed = this.#committed(queries, next === undefined);
    return { committed, next: next && committed.then(() => this.#orDrop(next)) };
  }

  async #orDrop(next: Promise<TurnStart>): Promise<TurnStart> {
    try {
      return await next;
    } catch (error) {
      this.#drop();
      throw faultOf(error);
    }
  }

  async #committed(queries: readonly Promise<QueryResult>[], isLast: boolean): Promise<void> {
    const client = this.#client;
    try {
      const results = await together(queries);
      // The commit of a transaction that failed before is answered as what it is.
      if (results.at(-1)?.command !== 'COMMIT') throw new EngineError('retry');
      if (client && hasWarned(client)) throw new EngineError('in-doubt');
      if (isLast) this.#giveBack();
    } catch (error) {
      this.#drop();
      throw isRefusal(error) || error instanceof EngineError ? faultOf(error) : new EngineError('in-doubt', error);
    }
  }

  async abandon(): Promise<void> {
    const client = this.#client;
    if (!client) return;
    try {
      await client.query('ROLLBACK');
      this.#giveBack();
    } catch {
      this.#drop();
    }
  }

  async close(): Promise<void> {
    this.#drop();
    if (this.#isOwn) this.#connections.end();
  }

  #giveBack(): void {
    const client = this.#client;
    this.#client = undefined;
    if (client) this.#connections.give(client);
  }

  /** The database ends the transaction, if there is one, once it sees that the connection is gone. */
  #drop(): void {
    const client = this.#client;
    this.#client = undefined;
    if (client) this.#connections.drop(client);
  }
}

/** The first failure, once all are done: none may be left that nobody waits for. */
async function together(queries: readonly Promise<QueryResult>[]): Promise<readonly QueryResult[]> {
  const results = await Promise.allSettled(queries);
  return results.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
}

/** `bigint` comes as text. */
export function rowOf({
  seq,
  epoch,
  tag,
  sealed,
}: { [N in keyof LogRow]: N extends 'seq' ? string : LogRow[N] }): LogRow {
  return { seq: Number(seq), epoch, tag, sealed };
}
