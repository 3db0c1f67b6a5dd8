// The settings of a PostgreSQL session that statements rely on, each set explicitly: a database, a user or a server may
// have other defaults (ALTER DATABASE … SET, ALTER ROLE … SET, postgresql.conf), meant for other software. One is left
// alone: `default_transaction_read_only` forbids all writes, and changes no result.
import type { Client } from 'pg';

/** Settings that the server is too old to know are skipped. */
const settings: Readonly<Record<string, string>> = {
  client_encoding: 'UTF8',
  client_min_messages: 'warning',
  datestyle: 'ISO, YMD',
  intervalstyle: 'postgres',
  timezone: 'UTC',
  bytea_output: 'hex',
  extra_float_digits: '1',
  standard_conforming_strings: 'on',
  array_nulls: 'on',
  transform_null_equals: 'off',
  synchronous_commit: 'on',
  default_transaction_isolation: 'read committed',
  default_transaction_deferrable: 'off',
  lock_timeout: '0',
  idle_session_timeout: '0',
  transaction_timeout: '0',
};

/** A table that every appliance has. */
const anyTable = 'kms_store';

/** Makes the session independent of outside settings, and returns whether the server is a standby. */
export async function prepareSession(client: Client): Promise<boolean> {
  // No schema may come before `pg_catalog`, whose functions and operators are meant; one that is listed explicitly can.
  const path = await client.query('SELECT pg_catalog.current_schemas(false)::pg_catalog.text[] AS schemas');
  // Cast: an array of text, as the query says.
  const all = (path.rows[0] as { readonly schemas: readonly string[] }).schemas;
  const schemas = all.filter((name) => name !== 'pg_catalog');
  await client.query('SET search_path = pg_catalog');
  await client.query(
    `SELECT set_config(known.name, wanted.value, false)
      FROM unnest($1::text[], $2::text[]) AS wanted (name, value), pg_settings AS known
      WHERE lower(known.name) = wanted.name`,
    [Object.keys(settings), Object.values(settings)],
  );
  const { rows } = await client.query(
    `SELECT pg_is_in_recovery() AS standby, set_config('search_path', quote_ident(coalesce((
        SELECT name FROM unnest($1::text[]) WITH ORDINALITY AS schemas (name, place)
        WHERE to_regclass(quote_ident(name) || '.${anyTable}') IS NOT NULL
          OR has_schema_privilege(name, 'CREATE')
        ORDER BY to_regclass(quote_ident(name) || '.${anyTable}') IS NULL, place LIMIT 1
      ), $2)), false)`,
    [schemas, schemas[0] ?? 'public'],
  );
  return rows[0]?.standby === true;
}
