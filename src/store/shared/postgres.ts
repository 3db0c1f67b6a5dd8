// A shared engine in PostgreSQL or a compatible database: a few tables, row locks, READ COMMITTED, no extension, no
// advisory lock and no notification. Its commits are as durable as `synchronous_commit` and the operator's replication
// make them.
import type { Client, ClientConfig } from 'pg';
import { KmsError } from '../../errors.ts';
import type { WholeFiles } from '../files.ts';
import {
  type CoveredLog,
  EngineError,
  type EngineFacts,
  type KnownRow,
  type ListedNode,
  type ListedStore,
  type LogConnection,
  type LogRow,
  type NodeEntry,
  type SharedEngine,
  type SharedSeal,
} from './engine.ts';
import { faultOf, isOwn, type PostgresConfig, PostgresConnections, type Query } from './postgres-connections.ts';
import { listNodes, noteNode, readFacts, readSeal, replaceSeal } from './postgres-control.ts';
import { PostgresFiles, partsOf, putFile } from './postgres-files.ts';
import { insertRow, LogConnections, PostgresLogConnection, rowOf } from './postgres-log-connections.ts';

const schema = [
  `CREATE TABLE IF NOT EXISTS kms_store (
    store text PRIMARY KEY, name text NOT NULL UNIQUE, protocol int NOT NULL, whole boolean NOT NULL DEFAULT false,
    made timestamptz NOT NULL DEFAULT clock_timestamp()
  )`,
  `CREATE TABLE IF NOT EXISTS kms_seal (
    id int PRIMARY KEY CHECK (id = 1), version int NOT NULL, bytes bytea NOT NULL, sealed boolean NOT NULL DEFAULT false
  )`,
  'CREATE TABLE IF NOT EXISTS kms_job (store text PRIMARY KEY)',
  `CREATE TABLE IF NOT EXISTS kms_log (
    store text NOT NULL, seq bigint NOT NULL, epoch int NOT NULL, tag bytea NOT NULL, sealed bytea NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (store, seq)
  )`,
  `CREATE TABLE IF NOT EXISTS kms_file (
    dir text NOT NULL, name text NOT NULL, chunk int NOT NULL, bytes bytea NOT NULL, PRIMARY KEY (dir, name, chunk)
  )`,
  `CREATE TABLE IF NOT EXISTS kms_hold (
    store text NOT NULL, holder text NOT NULL, until timestamptz NOT NULL, PRIMARY KEY (store, holder)
  )`,
  `CREATE TABLE IF NOT EXISTS kms_node (
    node text PRIMARY KEY, told text NOT NULL, began timestamptz NOT NULL, seen timestamptz NOT NULL
  )`,
];
const tables = schema.map((statement) => /kms_\w+/.exec(statement)?.[0]);

/** Milliseconds. The first ends the turn of a stalled node; the second is the longest wait for a turn. */
const idleInTurn = 1500;
const longestStatement = 10_000;
/**
 * Milliseconds, for a checkpoint, which holds its lock in a transaction of its own: the idle time that ends the
 * transaction, and the interval of the messages that keep it alive. A stalled node thus does not keep others from
 * theirs.
 */
const longestSilence = 6000;
const sayEvery = 1500;
/** Checkpoints of a node that may hold their lock at once; the others wait for them. */
const mostJobs = 4;

/** Rows deleted at once when a log is erased. */
const rowsAtOnce = 5000;

/** Opens a database, and makes missing tables. Throws `EngineError`. */
export async function openPostgres(config: PostgresConfig): Promise<SharedEngine & { close(): Promise<void> }> {
  const settings: ClientConfig = {
    application_name: 'kms',
    keepAlive: true,
    connectionTimeoutMillis: 5000,
    // Abandons a connection that no longer answers.
    query_timeout: longestStatement + 2000,
    // These two are sent in the startup message, ahead of any setting for the database or the user.
    statement_timeout: longestStatement,
    idle_in_transaction_session_timeout: idleInTurn,
  };
  const engine = new PostgresEngine(new PostgresConnections(config, settings));
  await engine.prepare();
  return engine;
}

class PostgresEngine implements SharedEngine {
  readonly files: WholeFiles;
  readonly #connections: PostgresConnections;
  readonly #logConnections = new LogConnections(() => this.#connect());
  readonly #jobs = new LogConnections(() => this.#connect(), mostJobs);

  constructor(connections: PostgresConnections) {
    this.#connections = connections;
    this.files = new PostgresFiles(connections);
  }

  async prepare(tries = 5): Promise<void> {
    try {
      await this.#connections.writing(async (client) => {
        const there = await client.query('SELECT count(to_regclass(name)) AS n FROM unnest($1::text[]) AS name', [
          tables,
        ]);
        if (Number(there.rows[0]?.n) < tables.length) for (const statement of schema) await client.query(statement);
      });
    } catch (error) {
      // Another node that starts at the same time makes the same tables.
      if (tries === 1 || !(error instanceof EngineError && error.fault === 'retry')) throw error;
      await this.prepare(tries - 1);
    }
  }

  async create(store: string, protocol: number, { seq, epoch, tag, sealed }: LogRow, name = store): Promise<void> {
    const isMade = await this.#connections.writing(async (client) => {
      const text = 'INSERT INTO kms_store (store, name, protocol) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING';
      const { rowCount } = await client.query(text, [store, name, protocol]);
      if (rowCount !== 1) return false;
      await client.query('INSERT INTO kms_job (store) VALUES ($1)', [store]);
      await client.query(insertRow, [store, seq, epoch, Buffer.from(tag), Buffer.from(sealed)]);
      return true;
    });
    if (!isMade) throw new KmsError('refused', `there is a store ${name} in the shared database already`);
  }

  facts(): Promise<EngineFacts> {
    return this.#connections.reading(readFacts);
  }

  noteNode(node: NodeEntry, begins: boolean): ReturnType<SharedEngine['noteNode']> {
    return this.#connections.writing((client) => noteNode(client, node, begins));
  }

  nodes(): Promise<readonly ListedNode[]> {
    return this.#connections.reading(listNodes);
  }

  forgetNode(id: string): Promise<void> {
    return this.#change('DELETE FROM kms_node WHERE node = $1', [id]);
  }

  readSeal(): Promise<SharedSeal | undefined> {
    return this.#connections.reading(readSeal);
  }

  replaceSeal(before: number, bytes: Uint8Array): Promise<boolean> {
    return this.#connections.writing((client) => replaceSeal(client, before, bytes));
  }

  markSealed(isSealed: boolean): Promise<void> {
    return this.#change('UPDATE kms_seal SET sealed = $1', [isSealed]);
  }

  stores(): Promise<readonly ListedStore[]> {
    const text = `SELECT name, store, whole, EXTRACT(EPOCH FROM clock_timestamp() - made) * 1000 AS age
      FROM kms_store ORDER BY made, name`;
    return this.#connections.reading(async (client) =>
      (await client.query(text)).rows.map(({ name, store, whole, age }) => ({
        name,
        store,
        isWhole: whole,
        age: Number(age),
      })),
    );
  }

  finish(store: string): Promise<void> {
    return this.#change('UPDATE kms_store SET whole = true WHERE store = $1', [store]);
  }

  async erase(store: string): Promise<void> {
    await this.#change('UPDATE kms_store SET whole = false WHERE store = $1', [store]);
    const rows = `DELETE FROM kms_log WHERE store = $1
      AND seq < (SELECT min(seq) FROM kms_log WHERE store = $1) + ${rowsAtOnce}`;
    while ((await this.#changed(rows, [store])) > 0);
    for (const name of await this.files.list(store)) {
      await this.#change('DELETE FROM kms_file WHERE dir = $1 AND name = $2', [store, name]);
    }
    for (const table of ['kms_hold', 'kms_job']) await this.#change(`DELETE FROM ${table} WHERE store = $1`, [store]);
    await this.#change('DELETE FROM kms_store WHERE store = $1', [store]);
  }

  async #change(text: string, values: readonly unknown[]): Promise<void> {
    await this.#changed(text, values);
  }

  /** Returns the number of rows changed. */
  #changed(text: string, values: readonly unknown[]): Promise<number> {
    return this.#connections.writing(async (client) => (await client.query(text, [...values])).rowCount ?? 0);
  }

  logConnection(store: string, isOwn = false): LogConnection {
    const connections = isOwn ? new LogConnections(() => this.#connect(), 1) : this.#logConnections;
    return new PostgresLogConnection(connections, store, isOwn);
  }

  #connect(): Promise<Client> {
    return this.#connections.open({ pipeline: true });
  }

  rows(store: string, from: number, limit: number): Promise<readonly LogRow[]> {
    const text = 'SELECT seq, epoch, tag, sealed FROM kms_log WHERE store = $1 AND seq >= $2 ORDER BY seq LIMIT $3';
    return this.#connections.reading(async (client) =>
      (await client.query(text, [store, from, limit])).rows.map(rowOf),
    );
  }

  /** The job takes connections of the pool, and may be one of many: a copy of the appliance runs one for each store. */
  async alone(store: string, job: () => Promise<void>): Promise<boolean> {
    let client: Client | undefined;
    let saying: NodeJS.Timeout | undefined;
    try {
      const own = await this.#jobs.take();
      client = own;
      await own.query('BEGIN');
      const goOn = () => own.query(`SET LOCAL idle_in_transaction_session_timeout = ${longestSilence}`);
      await goOn();
      const { rowCount } = await own.query('SELECT 1 FROM kms_job WHERE store = $1 FOR UPDATE SKIP LOCKED', [store]);
      if (rowCount !== 1) return false;
      // The job continues even without the connection.
      saying = setInterval(() => goOn().catch(() => {}), sayEvery);
      await job();
      return true;
    } catch (error) {
      throw isOwn(error) ? error : faultOf(error);
    } finally {
      clearInterval(saying);
      // Ends the transaction, and with it the lock.
      if (client) this.#jobs.drop(client);
    }
  }

  replaceBehind(
    store: string,
    row: KnownRow,
    name: string,
    bytes: Uint8Array | AsyncIterable<Uint8Array>,
  ): Promise<void> {
    return this.#connections.writing(async (client) => {
      if (!(await isThere(client, store, row))) throw new EngineError('retry');
      await putFile(client, name, bytes);
    });
  }

  trim(store: string, { files, seq, tag }: CoveredLog, keep: number, remove: readonly string[]): Promise<boolean> {
    return this.#connections.writing(async (client) => {
      const isKnown = await isThere(client, store, { seq, tag });
      const names = files.map((name) => partsOf(name)[1]);
      const there = await client.query(
        'SELECT count(*) AS n FROM kms_file WHERE dir = $1 AND chunk = 0 AND name = ANY($2)',
        [store, names],
      );
      if (!isKnown || Number(there.rows[0]?.n) !== new Set(names).size) return false;
      const old = `DELETE FROM kms_log WHERE store = $1 AND seq < $2
        AND at < clock_timestamp() - $3 * interval '1 millisecond'`;
      await client.query(old, [store, seq, keep]);
      const gone = remove.map((name) => partsOf(name)[1]);
      const unless = `DELETE FROM kms_file WHERE dir = $1 AND name = ANY($2) AND NOT EXISTS (${heldNow})`;
      await client.query(unless, [store, gone]);
      return true;
    });
  }

  hold(store: string, holder: string, milliseconds: number, begins: boolean): Promise<boolean> {
    const until = `clock_timestamp() + $3 * interval '1 millisecond'`;
    const text = begins
      ? `INSERT INTO kms_hold (store, holder, until) VALUES ($1, $2, ${until})`
      : `UPDATE kms_hold SET until = ${until} WHERE store = $1 AND holder = $2 AND until > clock_timestamp()`;
    return this.#connections.writing(async (client) => {
      if (begins) await client.query('DELETE FROM kms_hold WHERE store = $1 AND until < clock_timestamp()', [store]);
      return (await client.query(text, [store, holder, milliseconds])).rowCount === 1;
    });
  }

  letGo(store: string, holder: string): Promise<void> {
    return this.#change('DELETE FROM kms_hold WHERE store = $1 AND holder = $2', [store, holder]);
  }

  isHeld(store: string): Promise<boolean> {
    return this.#connections.reading(async (client) => (await client.query(heldNow, [store])).rowCount === 1);
  }

  async close(): Promise<void> {
    this.#logConnections.end();
    this.#connections.close();
  }
}

const heldNow = 'SELECT 1 FROM kms_hold WHERE store = $1 AND until > clock_timestamp() LIMIT 1';

async function isThere(client: Query, store: string, { seq, tag }: KnownRow): Promise<boolean> {
  const text = 'SELECT 1 FROM kms_log WHERE store = $1 AND seq = $2 AND tag = $3';
  return (await client.query(text, [store, seq, Buffer.from(tag)])).rowCount === 1;
}
