// Data that the nodes of a PostgreSQL share beside the logs: the list of nodes, the seal, and the server's facts about
// itself.
import {
  type EngineFacts,
  type ListedNode,
  type NodeEntry,
  nodeForgotten,
  type SharedEngine,
  type SharedSeal,
} from './engine.ts';
import type { Query } from './postgres-connections.ts';

/** The server's clock as a number; a date would depend on the server's date style. */
export const milliseconds = 'floor(extract(epoch FROM clock_timestamp()) * 1000)';

export async function noteNode(
  client: Query,
  { id, ...told }: NodeEntry,
  begins: boolean,
): ReturnType<SharedEngine['noteNode']> {
  await client.query('SET LOCAL synchronous_commit = off');
  const note = `INSERT INTO kms_node (node, told, began, seen) VALUES ($1, $2, statement_timestamp(), statement_timestamp())
    ON CONFLICT (node) DO UPDATE
    SET told = $2, seen = statement_timestamp(), began = CASE WHEN $3 THEN statement_timestamp() ELSE kms_node.began END`;
  await client.query(note, [id, JSON.stringify(told), begins]);
  const old = `DELETE FROM kms_node WHERE seen < clock_timestamp() - $1 * interval '1 millisecond'`;
  await client.query(old, [nodeForgotten]);
  const nodes = await listNodes(client);
  const { rows } = await client.query(`SELECT ${milliseconds} AS now`);
  return { now: Number(rows[0]?.now), nodes };
}

export async function listNodes(client: Query): Promise<readonly ListedNode[]> {
  const text = `WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT node, told, EXTRACT(EPOCH FROM now - began) * 1000 AS up_for, EXTRACT(EPOCH FROM now - seen) * 1000 AS age
    FROM kms_node, clock ORDER BY began, node`;
  const { rows } = await client.query(text);
  return rows.flatMap(({ node, told, up_for, age }) => {
    const entry = entryOf(node, told);
    return entry ? [{ ...entry, upFor: Number(up_for), age: Number(age) }] : [];
  });
}

/** The entry written by a node of any release, or by another program; undefined if it is malformed. */
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

export async function readSeal(client: Query): Promise<SharedSeal | undefined> {
  const [row] = (await client.query('SELECT version, bytes, sealed FROM kms_seal')).rows;
  return row && { version: row.version, bytes: new Uint8Array(row.bytes), isSealed: row.sealed };
}

/** Returns whether it was replaced. */
export async function replaceSeal(client: Query, before: number, bytes: Uint8Array): Promise<boolean> {
  const first = 'INSERT INTO kms_seal (id, version, bytes) VALUES (1, 1, $1) ON CONFLICT DO NOTHING';
  const next = 'UPDATE kms_seal SET version = version + 1, bytes = $1 WHERE version = $2';
  const sent = Buffer.from(bytes);
  const { rowCount } = await (before === 0 ? client.query(first, [sent]) : client.query(next, [sent, before]));
  return rowCount === 1;
}

const factsQuery = `SELECT current_setting('server_version') AS version,
  current_setting('server_version_num')::int AS number, current_setting('fsync')::boolean AS fsync,
  current_setting('full_page_writes')::boolean AS pages, current_setting('synchronous_standby_names') AS standbys,
  (SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl) AS tls,
  host(inet_client_addr()) AS address, current_setting('is_superuser')::boolean AS superuser,
  ${milliseconds} AS now`;

export async function readFacts(client: Query): Promise<EngineFacts> {
  const [row] = (await client.query(factsQuery)).rows;
  const { rows } = await client.query('SELECT application_name AS name, sync_state AS sync FROM pg_stat_replication');
  const { version, number, fsync, pages, standbys, tls, address, superuser, now } = row;
  return {
    version,
    versionNumber: number,
    fsync,
    fullPageWrites: pages,
    synchronousStandbys: standbys,
    // A user without the right sees that there are standbys, but not more.
    standbys: rows.some(({ sync }) => sync === null)
      ? undefined
      : rows.map(({ name, sync }) => ({ name, isSynchronous: sync === 'sync' || sync === 'quorum' })),
    tls: tls ?? undefined,
    isLocal: address === null || /^(?:127\.|::1$)/.test(address),
    isSuperuser: superuser,
    now: Number(now),
  };
}
