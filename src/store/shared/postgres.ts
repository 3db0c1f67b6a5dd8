// A shared engine in PostgreSQL, or in whatever speaks like it: a few tables, row locks, READ COMMITTED, no extension, no
// advisory lock and no notification. What it acknowledges is as durable as `synchronous_commit` and the operator's
// replication make it.
import type { Client, ClientConfig, QueryResult } from 'pg';
import { KmsError } from '../../errors.ts';
import type { WholeFiles } from '../files.ts';
import {
  type CoveredLog,
  EngineError,
  type EngineFacts,
  type EngineFault,
  type KnownRow,
  type Lane,
  type ListedNode,
  type ListedStore,
  type LogRow,
  type NodeEntry,
  nodeForgotten,
  rowsInTurn,
  type SharedEngine,
  type SharedSeal,
  systemName,
  type TurnEnd,
  type TurnStart,
} from './engine.ts';
import { hasWarned, historyOf, type PostgresConfig, PostgresConnections, refusalOf } from './postgres-connections.ts';

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

/** Milliseconds. A turn of a node that stands still ends by the first; whoever waits for a turn waits for the second. */
const idleInTurn = 1500;
const longestStatement = 10_000;
/**
 * Of a checkpoint, which holds its lock in a transaction of its own, and says so often that it goes on: a node that
 * stands still keeps others from theirs no longer.
 */
const longestSilence = 6000;
const sayEvery = 1500;

/** Connections of a node for the turns of its tenants: one is used for a trip or two at a time. */
const mostLanes = 8;

const chunkLength = 256 * 1024;

/** Of a log that goes. */
const rowsAtOnce = 5000;

/** Opens a database, and makes the tables that are missing. Throws `EngineError`. */
export async function openPostgres(config: PostgresConfig): Promise<SharedEngine & { close(): Promise<void> }> {
  const settings: ClientConfig = {
    application_name: 'kms',
    keepAlive: true,
    connectionTimeoutMillis: 5000,
    // A connection that answers no more is given up.
    query_timeout: longestStatement + 2000,
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
  readonly #lanes = new LaneConnections(() => this.#connect(), mostLanes);

  constructor(connections: PostgresConnections) {
    this.#connections = connections;
    this.files = new PostgresFiles(
      (run) => this.#reading(run),
      (run) => this.#writing(run),
    );
  }

  async prepare(tries = 5): Promise<void> {
    try {
      await this.#writing(async (client) => {
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
    const isMade = await this.#writing(async (client) => {
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
    return this.#reading(async (client) => {
      const [row] = (await client.query(factsQuery)).rows;
      const { rows } = await client.query(
        'SELECT application_name AS name, sync_state AS sync FROM pg_stat_replication',
      );
      const { version, number, fsync, pages, standbys, tls, address, superuser, now } = row;
      return {
        version,
        versionNumber: number,
        fsync,
        fullPageWrites: pages,
        synchronousStandbys: standbys,
        // A user without the right sees that there are some, and no more.
        standbys: rows.some(({ sync }) => sync === null)
          ? undefined
          : rows.map(({ name, sync }) => ({ name, isSynchronous: sync === 'sync' || sync === 'quorum' })),
        tls: tls ?? undefined,
        isLocal: address === null || /^(?:127\.|::1$)/.test(address),
        isSuperuser: superuser,
        now: Number(now),
      };
    });
  }

  noteNode({ id, ...told }: NodeEntry, begins: boolean): ReturnType<SharedEngine['noteNode']> {
    return this.#writing(async (client) => {
      await client.query('SET LOCAL synchronous_commit = off');
      const note = `INSERT INTO kms_node (node, told, began, seen) VALUES ($1, $2, statement_timestamp(), statement_timestamp())
        ON CONFLICT (node) DO UPDATE
        SET told = $2, seen = statement_timestamp(), began = CASE WHEN $3 THEN statement_timestamp() ELSE kms_node.began END`;
      await client.query(note, [id, JSON.stringify(told), begins]);
      const old = `DELETE FROM kms_node WHERE seen < clock_timestamp() - $1 * interval '1 millisecond'`;
      await client.query(old, [nodeForgotten]);
      const nodes = await listNodes(client);
      const { rows } = await client.query('SELECT clock_timestamp() AS now');
      return { now: Number(rows[0]?.now), nodes };
    });
  }

  nodes(): Promise<readonly ListedNode[]> {
    return this.#reading(listNodes);
  }

  forgetNode(id: string): Promise<void> {
    return this.#change('DELETE FROM kms_node WHERE node = $1', [id]);
  }

  stores(): Promise<readonly ListedStore[]> {
    const text = `SELECT name, store, whole, EXTRACT(EPOCH FROM clock_timestamp() - made) * 1000 AS age
      FROM kms_store ORDER BY made, name`;
    return this.#reading(async (client) =>
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

  readSeal(): Promise<SharedSeal | undefined> {
    return this.#reading(async (client) => {
      const [row] = (await client.query('SELECT version, bytes, sealed FROM kms_seal')).rows;
      return row && { version: row.version, bytes: new Uint8Array(row.bytes), isSealed: row.sealed };
    });
  }

  async replaceSeal(before: number, bytes: Uint8Array): Promise<boolean> {
    const first = 'INSERT INTO kms_seal (id, version, bytes) VALUES (1, 1, $1) ON CONFLICT DO NOTHING';
    const next = 'UPDATE kms_seal SET version = version + 1, bytes = $1 WHERE version = $2';
    const sent = Buffer.from(bytes);
    return (await (before === 0 ? this.#changed(first, [sent]) : this.#changed(next, [sent, before]))) === 1;
  }

  markSealed(isSealed: boolean): Promise<void> {
    return this.#change('UPDATE kms_seal SET sealed = $1', [isSealed]);
  }

  async #change(text: string, values: readonly unknown[]): Promise<void> {
    await this.#changed(text, values);
  }

  /** How many rows the statement changed. */
  #changed(text: string, values: readonly unknown[]): Promise<number> {
    return this.#writing(async (client) => (await client.query(text, [...values])).rowCount ?? 0);
  }

  lane(store: string, isOwn = false): Lane {
    const lanes = isOwn ? new LaneConnections(() => this.#connect(), 1) : this.#lanes;
    return new PostgresLane(lanes, store, isOwn);
  }

  #connect(): Promise<Client> {
    return this.#connections.open({ pipeline: true });
  }

  rows(store: string, from: number, limit: number): Promise<readonly LogRow[]> {
    const text = 'SELECT seq, epoch, tag, sealed FROM kms_log WHERE store = $1 AND seq >= $2 ORDER BY seq LIMIT $3';
    return this.#reading(async (client) => (await client.query(text, [store, from, limit])).rows.map(rowOf));
  }

  /** On a connection of its own: the job takes those of the pool. */
  async alone(store: string, job: () => Promise<void>): Promise<boolean> {
    let client: Client | undefined;
    let saying: NodeJS.Timeout | undefined;
    try {
      const own = await this.#connect();
      client = own;
      await own.query('BEGIN');
      const goOn = () => own.query(`SET LOCAL idle_in_transaction_session_timeout = ${longestSilence}`);
      await goOn();
      const { rowCount } = await own.query('SELECT 1 FROM kms_job WHERE store = $1 FOR UPDATE SKIP LOCKED', [store]);
      if (rowCount !== 1) return false;
      // Without the connection the job goes on too.
      saying = setInterval(() => goOn().catch(() => {}), sayEvery);
      await job();
      return true;
    } catch (error) {
      throw isOwn(error) ? error : faultOf(error);
    } finally {
      clearInterval(saying);
      // Which ends the transaction.
      client?.end().catch(() => {});
    }
  }

  replaceBehind(
    store: string,
    row: KnownRow,
    name: string,
    bytes: Uint8Array | AsyncIterable<Uint8Array>,
  ): Promise<void> {
    return this.#writing(async (client) => {
      if (!(await isThere(client, store, row))) throw new EngineError('retry');
      await putFile(client, name, bytes);
    });
  }

  trim(store: string, { files, seq, tag }: CoveredLog, keep: number, remove: readonly string[]): Promise<boolean> {
    return this.#writing(async (client) => {
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
    return this.#writing(async (client) => {
      if (begins) await client.query('DELETE FROM kms_hold WHERE store = $1 AND until < clock_timestamp()', [store]);
      return (await client.query(text, [store, holder, milliseconds])).rowCount === 1;
    });
  }

  letGo(store: string, holder: string): Promise<void> {
    return this.#writing(async (client) => {
      await client.query('DELETE FROM kms_hold WHERE store = $1 AND holder = $2', [store, holder]);
    });
  }

  isHeld(store: string): Promise<boolean> {
    return this.#reading(async (client) => (await client.query(heldNow, [store])).rowCount === 1);
  }

  async close(): Promise<void> {
    this.#lanes.end();
    this.#connections.close();
  }

  async #reading<R>(run: (client: Client) => Promise<R>): Promise<R> {
    try {
      return await this.#connections.with(run, isOwn);
    } catch (error) {
      throw isOwn(error) ? error : faultOf(error);
    }
  }

  #writing<R>(run: (client: Client) => Promise<R>): Promise<R> {
    return this.#reading(async (client) => {
      await client.query('BEGIN');
      await client.query('SET LOCAL synchronous_commit = on');
      const result = await run(client).catch(async (error: unknown) => {
        if (isOwn(error)) await client.query('ROLLBACK');
        throw error;
      });
      const { command } = await client.query('COMMIT');
      if (command !== 'COMMIT') throw new EngineError('retry');
      if (hasWarned(client)) throw new EngineError('in-doubt');
      return result;
    });
  }
}

const heldNow = 'SELECT 1 FROM kms_hold WHERE store = $1 AND until > clock_timestamp() LIMIT 1';

const factsQuery = `SELECT current_setting('server_version') AS version,
  current_setting('server_version_num')::int AS number, current_setting('fsync')::boolean AS fsync,
  current_setting('full_page_writes')::boolean AS pages, current_setting('synchronous_standby_names') AS standbys,
  (SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl) AS tls,
  host(inet_client_addr()) AS address, current_setting('is_superuser')::boolean AS superuser,
  clock_timestamp() AS now`;

async function listNodes(client: Query): Promise<readonly ListedNode[]> {
  const text = `WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT node, told, EXTRACT(EPOCH FROM now - began) * 1000 AS up_for, EXTRACT(EPOCH FROM now - seen) * 1000 AS age
    FROM kms_node, clock ORDER BY began, node`;
  const { rows } = await client.query(text);
  return rows.flatMap(({ node, told, up_for, age }) => {
    const entry = entryOf(node, told);
    return entry ? [{ ...entry, upFor: Number(up_for), age: Number(age) }] : [];
  });
}

/** What a node of any release, or whoever else writes there, told of itself; undefined for what makes no sense. */
function entryOf(id: string, told: string): NodeEntry | undefined {
  try {
    const { build, schemas, appendRule, places } = JSON.parse(told);
    const { system, tenant } = schemas;
    const isSound =
      typeof build === 'string' &&
      [system, tenant, appendRule].every(Number.isSafeInteger) &&
      Array.isArray(places) &&
      places.every((place) => typeof place === 'string');
    return isSound ? { id, build, schemas: { system, tenant }, appendRule, places } : undefined;
  } catch {
    return undefined;
  }
}

const insertRow = 'INSERT INTO kms_log (store, seq, epoch, tag, sealed) VALUES ($1, $2, $3, $4, $5)';

/** Connections of lanes, each used by one turn at a time: so many at most, whoever else wants one waits. */
class LaneConnections {
  readonly #connect: () => Promise<Client>;
  readonly #most: number;
  readonly #idle = new Set<Client>();
  readonly #waiting: (() => void)[] = [];
  #used = 0;

  constructor(connect: () => Promise<Client>, most: number) {
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

class PostgresLane implements Lane {
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
      clock_timestamp() AS now, (SELECT version FROM kms_seal) AS seal_version, (SELECT sealed FROM kms_seal) AS is_sealed, (
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

type Query = Pick<Client, 'query'>;

class PostgresFiles implements WholeFiles {
  readonly #reading: <R>(run: (client: Query) => Promise<R>) => Promise<R>;
  readonly #writing: <R>(run: (client: Query) => Promise<R>) => Promise<R>;

  constructor(
    reading: <R>(run: (client: Query) => Promise<R>) => Promise<R>,
    writing: <R>(run: (client: Query) => Promise<R>) => Promise<R>,
  ) {
    this.#reading = reading;
    this.#writing = writing;
  }

  list(dir: string): Promise<string[]> {
    const text = 'SELECT name FROM kms_file WHERE dir = $1 AND chunk = 0 ORDER BY name';
    return this.#reading(async (client) => (await client.query(text, [dir])).rows.map(({ name }) => name));
  }

  async exists(name: string): Promise<boolean> {
    return (await this.#size(name)) !== undefined;
  }

  async size(name: string): Promise<number> {
    return (await this.#size(name)) ?? missing(name);
  }

  #size(name: string): Promise<number | undefined> {
    const text =
      'SELECT chunk, length(bytes) AS n FROM kms_file WHERE dir = $1 AND name = $2 ORDER BY chunk DESC LIMIT 1';
    return this.#reading(async (client) => {
      const [last] = (await client.query(text, partsOf(name))).rows;
      return last && last.chunk * chunkLength + last.n;
    });
  }

  async read(name: string): Promise<Uint8Array> {
    return this.readAt(name, 0, Number.MAX_SAFE_INTEGER);
  }

  readAt(name: string, offset: number, length: number): Promise<Uint8Array> {
    const first = Math.floor(offset / chunkLength);
    const last = Math.min(2 ** 31 - 1, Math.floor((offset + length - 1) / chunkLength));
    const text = 'SELECT bytes FROM kms_file WHERE dir = $1 AND name = $2 AND chunk BETWEEN $3 AND $4 ORDER BY chunk';
    return this.#reading(async (client) => {
      const { rows } = await client.query(text, [...partsOf(name), first, last]);
      if (rows.length === 0 && offset === 0) return missing(name);
      const bytes = new Uint8Array(Buffer.concat(rows.map((row) => row.bytes)));
      return bytes.subarray(offset - first * chunkLength, offset - first * chunkLength + length);
    });
  }

  replace(name: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    return this.#writing((client) => putFile(client, name, bytes));
  }

  remove(name: string): Promise<void> {
    return this.#writing(async (client) => {
      const { rowCount } = await client.query('DELETE FROM kms_file WHERE dir = $1 AND name = $2', partsOf(name));
      if (rowCount === 0) missing(name);
    });
  }
}

async function isThere(client: Query, store: string, { seq, tag }: KnownRow): Promise<boolean> {
  const text = 'SELECT 1 FROM kms_log WHERE store = $1 AND seq = $2 AND tag = $3';
  return (await client.query(text, [store, seq, Buffer.from(tag)])).rowCount === 1;
}

/** In a transaction. */
async function putFile(client: Query, name: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
  const parts = partsOf(name);
  await client.query('DELETE FROM kms_file WHERE dir = $1 AND name = $2', parts);
  let chunk = 0;
  for await (const piece of chunksOf(bytes)) {
    const text = 'INSERT INTO kms_file (dir, name, chunk, bytes) VALUES ($1, $2, $3, $4)';
    await client.query(text, [...parts, chunk++, piece]);
  }
}

/** One of at least; all but the last are full. */
async function* chunksOf(bytes: Uint8Array | AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let filled: Buffer = Buffer.alloc(0);
  for await (const piece of bytes instanceof Uint8Array ? [bytes] : bytes) {
    filled = Buffer.concat([filled, piece]);
    for (; filled.length > chunkLength; filled = filled.subarray(chunkLength)) yield filled.subarray(0, chunkLength);
  }
  yield filled;
}

function missing(name: string): never {
  throw Object.assign(new Error(`ENOENT: ${name}`), { code: 'ENOENT' });
}

/** Directory and name. */
function partsOf(name: string): [string, string] {
  const at = name.lastIndexOf('/');
  return [name.slice(0, at), name.slice(at + 1)];
}

/** `bigint` comes as text. */
function rowOf({ seq, epoch, tag, sealed }: { [N in keyof LogRow]: N extends 'seq' ? string : LogRow[N] }): LogRow {
  return { seq: Number(seq), epoch, tag, sealed };
}

/** Not of the database: a file that is not there, or something of the product. */
function isOwn(error: unknown): boolean {
  return error instanceof KmsError || codeOf(error) === 'ENOENT';
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** The database has said that it did not do it, on a connection that goes on. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && 'severity' in error && error.severity === 'ERROR';
}

const faults: Readonly<Record<string, EngineFault>> = {
  '25006': 'read-only',
  '53100': 'full',
  '40001': 'retry',
  '40P01': 'retry',
  '23505': 'retry',
  '42P07': 'retry',
};

function faultOf(error: unknown): KmsError {
  if (error instanceof KmsError) return error;
  return new EngineError(faults[codeOf(error)] ?? 'unreachable', error, refusalOf(error));
}
