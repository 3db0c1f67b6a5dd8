// Turns of logs in a PostgreSQL: each is a transaction that holds the lock of a store's row, with as much as possible
// sent in one message. Connections are few, and taken for a turn or two at a time.
import type { Client, QueryResult } from 'pg';
import { KmsError } from '../../errors.ts';
import {
  EngineError,
  type LogConnection,
  type LogRow,
  rowsInTurn,
  systemName,
  type TurnEnd,
  type TurnStart,
} from './engine.ts';
import { faultOf, hasWarned, historyOf, isRefusal } from './postgres-connections.ts';
import { milliseconds } from './postgres-control.ts';

/** Connections of a node for the turns of its tenants; each is used for a round trip or two at a time. */
const mostConnections = 8;

export const insertRow = 'INSERT INTO kms_log (store, seq, epoch, tag, sealed) VALUES ($1, $2, $3, $4, $5)';

/** A pool of database connections, each with one user at a time; when all are in use, callers wait. */
export class LogConnections {
  readonly #connect: () => Promise<Client>;
  readonly #most: number;
  readonly #idle = new Set<Client>();
  readonly #waiting: (() => void)[] = [];
  #used = 0;

  constructor(connect: () => Promise<Client>, most = mostConnections) {
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

  /** Ends a failed connection, and the idle ones too, which may have failed with it. */
  drop(client: Client): void {
    client.end().catch(() => {});
    this.end();
    this.#pass();
  }

  /** Hands the slot to the next waiter, if any. */
  #pass(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#used--;
  }

  /** Ends the idle connections. */
  end(): void {
    for (const client of this.#idle) client.end().catch(() => {});
    this.#idle.clear();
  }
}

export class PostgresLogConnection implements LogConnection {
  readonly #connections: LogConnections;
  readonly #store: string;
  /** Set while it has a turn, or is requesting one. */
  #client: Client | undefined;
  readonly #isOwn: boolean;

  constructor(connections: LogConnections, store: string, isOwn: boolean) {
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
    // The control values come with each row: a statement of their own would cost more.
    const read = `SELECT seq, epoch, tag, CASE WHEN seq > $2 THEN sealed END AS sealed,
      ${milliseconds} AS now, (SELECT version FROM kms_seal) AS seal_version, (SELECT sealed FROM kms_seal) AS is_sealed, (
        SELECT max(seq) FROM kms_log WHERE store = (SELECT store FROM kms_store WHERE name = '${systemName}')
      ) AS system_seq
      FROM kms_log WHERE store = $1 AND seq >= $2 ORDER BY seq LIMIT ${rowsInTurn + 2}`;
    const [, locked, found] = await together([
      client.query('BEGIN'),
      client.query({ name: 'kms-lock', text: lock, values: [store] }),
      // A separate statement from the one that waited, so that it sees the commits made in the meantime.
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
      // A COMMIT of a transaction that failed earlier is answered with ROLLBACK.
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

  /** The database ends the transaction, if any, once it sees that the connection is gone. */
  #drop(): void {
    const client = this.#client;
    this.#client = undefined;
    if (client) this.#connections.drop(client);
  }
}

/** Throws the first failure once all are done, so that no rejection goes unhandled. */
async function together(queries: readonly Promise<QueryResult>[]): Promise<readonly QueryResult[]> {
  const results = await Promise.allSettled(queries);
  return results.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
}

/** `bigint` arrives as text. */
export function rowOf({
  seq,
  epoch,
  tag,
  sealed,
}: { [N in keyof LogRow]: N extends 'seq' ? string : LogRow[N] }): LogRow {
  return { seq: Number(seq), epoch, tag, sealed };
}
