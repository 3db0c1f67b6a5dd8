// The schema of a tenant's database, as the ordered list of steps that made it. A released step never changes; a change
// of the schema is a new step. Drivers keep the number of steps done in the snapshot and run the missing ones at start,
// in one transaction.
import { KmsError } from '../../errors.ts';
import type { Session } from '../session.ts';
import type { State } from '../state.ts';

export interface Migration {
  readonly name: string;
  readonly statements: readonly string[];
}

export const tenantMigrations: readonly Migration[] = [
  {
    name: 'rings, keys, assets, accounts, API keys',
    statements: [
      // `seq` is the order of creation: lists and their cursors go by it.
      `CREATE TABLE rings (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        service TEXT NOT NULL CHECK (service IN ('ks', 'asym')),
        name TEXT NOT NULL,
        display_name TEXT NOT NULL,
        algorithm TEXT NOT NULL,
        active_key TEXT NOT NULL,
        kem TEXT NOT NULL,
        public_key TEXT NOT NULL,
        props TEXT NOT NULL,
        key_props TEXT NOT NULL,
        max_encrypt_count INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        deleted_at INTEGER
      )`,
      `CREATE UNIQUE INDEX rings_by_name ON rings (service, name) WHERE deleted_at IS NULL`,
      `CREATE INDEX rings_deleted ON rings (deleted_at) WHERE deleted_at IS NOT NULL`,
      `CREATE TABLE ring_keys (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        ring_id TEXT NOT NULL REFERENCES rings (id) ON DELETE CASCADE,
        algorithm TEXT NOT NULL,
        wrapped TEXT NOT NULL,
        iv TEXT NOT NULL,
        props TEXT NOT NULL,
        encrypt_count INTEGER NOT NULL DEFAULT 0,
        created_at INTEGER NOT NULL
      )`,
      `CREATE INDEX ring_keys_by_ring ON ring_keys (ring_id, seq)`,
      `CREATE TABLE assets (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        ring_id TEXT NOT NULL,
        version INTEGER NOT NULL,
        data TEXT NOT NULL,
        parents TEXT NOT NULL,
        apikey_id TEXT NOT NULL,
        account_id TEXT,
        created_at INTEGER NOT NULL
      )`,
      `CREATE INDEX assets_by_ring ON assets (ring_id, seq)`,
      `CREATE INDEX assets_by_apikey ON assets (apikey_id, seq)`,
      `CREATE INDEX assets_by_account ON assets (account_id, seq)`,
      `CREATE INDEX assets_by_time ON assets (created_at)`,
      // The versions before the current one, which older headers signed.
      `CREATE TABLE asset_versions (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        asset_id TEXT NOT NULL REFERENCES assets (id) ON DELETE CASCADE,
        version INTEGER NOT NULL,
        data TEXT NOT NULL,
        parents TEXT NOT NULL,
        UNIQUE (asset_id, version)
      )`,
      `CREATE TABLE asset_parents (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        asset_seq INTEGER NOT NULL REFERENCES assets (seq) ON DELETE CASCADE,
        asset_id TEXT NOT NULL,
        parent_id TEXT NOT NULL,
        UNIQUE (asset_id, parent_id)
      )`,
      // Children of a parent in order of creation, which is the order that a search answers them in.
      `CREATE INDEX asset_parents_by_parent ON asset_parents (parent_id, asset_seq)`,
      // Counted as they come and go: counting a million assets at each encrypt would cost more than the encrypt.
      `CREATE TABLE counts (seq INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, n INTEGER NOT NULL)`,
      `INSERT INTO counts (name, n) VALUES ('assets', 0)`,
      `CREATE TABLE accounts (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        uid TEXT NOT NULL UNIQUE,
        notes TEXT NOT NULL,
        props TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL
      )`,
      `CREATE TABLE api_keys (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        secret_hash TEXT NOT NULL UNIQUE,
        active INTEGER NOT NULL,
        account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
        user_id TEXT,
        flags TEXT NOT NULL,
        props TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL
      )`,
      `CREATE INDEX api_keys_by_account ON api_keys (account_id, seq)`,
      `CREATE INDEX api_keys_by_user ON api_keys (user_id, seq) WHERE user_id IS NOT NULL`,
      // Which rings a key's true flags name; a wildcard in place of the name stands as '*'.
      `CREATE TABLE api_key_rings (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        apikey_id TEXT NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
        ring_name TEXT NOT NULL,
        UNIQUE (apikey_id, ring_name)
      )`,
      `CREATE INDEX api_key_rings_by_name ON api_key_rings (ring_name, apikey_id)`,
    ],
  },
  {
    name: 'users, sessions, invites, password resets',
    statements: [
      // The `_key` columns are what is unique and looked up: the text without regard to case. No password hash =
      // invited, not completed.
      `CREATE TABLE users (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        username TEXT NOT NULL,
        username_key TEXT NOT NULL UNIQUE,
        email TEXT NOT NULL,
        email_key TEXT NOT NULL UNIQUE,
        first_name TEXT NOT NULL,
        last_name TEXT NOT NULL,
        display_name TEXT NOT NULL,
        flags TEXT NOT NULL,
        props TEXT NOT NULL,
        password_hash TEXT,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL
      )`,
      // Ended and expired sessions stay a while, so that who uses one is known. `chain_started_at` is the login that
      // the refreshes go back to.
      `CREATE TABLE sessions (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        token_hash TEXT NOT NULL UNIQUE,
        user_id TEXT NOT NULL,
        chain_started_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        ended_at INTEGER
      )`,
      `CREATE INDEX sessions_open ON sessions (user_id) WHERE ended_at IS NULL`,
      `CREATE INDEX sessions_by_expiry ON sessions (expires_at)`,
      // The newest invite and the newest reset of each user; one that was used or replaced has no row.
      `CREATE TABLE user_tokens (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL CHECK (kind IN ('invite', 'reset')),
        token_hash TEXT NOT NULL UNIQUE,
        user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        expires_at INTEGER NOT NULL,
        UNIQUE (user_id, kind)
      )`,
    ],
  },
  {
    name: 'stored versions of assets counted, holders of everything and sessions of a user found',
    statements: [
      `INSERT INTO counts (name, n)
        SELECT 'asset_versions', (SELECT COUNT(*) FROM assets) + (SELECT COUNT(*) FROM asset_versions)`,
      // Nearly always a row or two, however many keys and users there are.
      `CREATE INDEX api_keys_holding_all ON api_keys (seq) WHERE json_extract(flags, '$."*"') = 1`,
      `CREATE INDEX users_holding_all ON users (seq) WHERE json_extract(flags, '$."*"') = 1`,
      `CREATE INDEX sessions_by_user ON sessions (user_id, seq)`,
    ],
  },
  {
    name: 'what grows found without passing by what is not asked for',
    statements: [
      // Deleted rings, and those of the other service, are not gone through to list or count the others.
      `CREATE INDEX rings_listed ON rings (service, seq) WHERE deleted_at IS NULL`,
      // The keys that name a ring in the order in which they are listed.
      `ALTER TABLE api_key_rings ADD COLUMN apikey_seq INTEGER`,
      `UPDATE api_key_rings SET apikey_seq = (SELECT seq FROM api_keys WHERE id = apikey_id)`,
      `DROP INDEX api_key_rings_by_name`,
      `CREATE INDEX api_key_rings_by_name ON api_key_rings (ring_name, apikey_seq)`,
      // The ids that an answer about a user lists, in order: 100,000 of them in 20 ms, where the rows took 90.
      `DROP INDEX api_keys_by_user`,
      `CREATE INDEX api_keys_by_user ON api_keys (user_id, seq, id) WHERE user_id IS NOT NULL`,
      // Without those that do not let in.
      `DROP INDEX api_keys_holding_all`,
      `DROP INDEX users_holding_all`,
      `CREATE INDEX api_keys_holding_all ON api_keys (seq) WHERE json_extract(flags, '$."*"') = 1 AND active = 1`,
      `CREATE INDEX users_holding_all ON users (seq) WHERE json_extract(flags, '$."*"') = 1 AND password_hash IS NOT NULL`,
      // Without it, the deletion of an asset looks at the parents of all.
      `CREATE INDEX asset_parents_by_asset ON asset_parents (asset_seq)`,
    ],
  },
  {
    name: 'ids of sessions, and when and from where they were used',
    statements: [
      `ALTER TABLE sessions ADD COLUMN id TEXT NOT NULL DEFAULT ''`,
      `ALTER TABLE sessions ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0`,
      `ALTER TABLE sessions ADD COLUMN address TEXT`,
      // Of those that are there: a ULID of the login's time and, in place of what is random, the row's number.
      `UPDATE sessions SET used_at = chain_started_at, id = 'sess_' || ${ulidTime('chain_started_at')}
        || printf('%016d', seq)`,
    ],
  },
  {
    name: 'names, ends, addresses and makers of API keys, when they were used; when users logged in',
    statements: [
      `ALTER TABLE api_keys ADD COLUMN name TEXT NOT NULL DEFAULT ''`,
      `ALTER TABLE api_keys ADD COLUMN expires_at INTEGER`,
      `ALTER TABLE api_keys ADD COLUMN addresses TEXT NOT NULL DEFAULT '[]'`,
      `ALTER TABLE api_keys ADD COLUMN created_by TEXT`,
      // Until now a key belonged to the user who made it, and to nobody where a key or the administrator did.
      `UPDATE api_keys SET created_by = user_id WHERE user_id IS NOT NULL`,
      // A table of its own: writing here forgets nothing of what is remembered of the keys.
      `CREATE TABLE api_key_uses (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        apikey_id TEXT NOT NULL UNIQUE REFERENCES api_keys (id) ON DELETE CASCADE,
        used_at INTEGER NOT NULL
      )`,
      // By when they end: those that never do, and the others after a time.
      `DROP INDEX api_keys_holding_all`,
      `CREATE INDEX api_keys_holding_all ON api_keys (expires_at) WHERE json_extract(flags, '$."*"') = 1 AND active = 1`,
      `ALTER TABLE users ADD COLUMN last_login_at INTEGER`,
      // As far as sessions are remembered.
      `UPDATE users SET last_login_at = (SELECT MAX(chain_started_at) FROM sessions WHERE user_id = users.id)`,
    ],
  },
  {
    name: 'keys that give way by their age, deleted rings listed',
    statements: [
      // Whole seconds.
      `ALTER TABLE rings ADD COLUMN rotate_after INTEGER`,
      `CREATE INDEX rings_listed_deleted ON rings (service, seq) WHERE deleted_at IS NOT NULL`,
    ],
  },
  {
    name: 'when and by whom keys were used',
    statements: [
      // The latest use of each kind: 'e'ncrypt, 'd'ecrypt.
      `CREATE TABLE key_uses (
        key_seq INTEGER NOT NULL REFERENCES ring_keys (seq) ON DELETE CASCADE,
        kind TEXT NOT NULL,
        used_at INTEGER NOT NULL,
        used_by TEXT NOT NULL,
        PRIMARY KEY (key_seq, kind)
      ) WITHOUT ROWID`,
      // By days since 1970, UTC. A day takes the row of the one that was a hundred days before.
      `CREATE TABLE key_days (
        key_seq INTEGER NOT NULL REFERENCES ring_keys (seq) ON DELETE CASCADE,
        slot INTEGER NOT NULL,
        day INTEGER NOT NULL,
        encrypts INTEGER NOT NULL,
        decrypts INTEGER NOT NULL,
        PRIMARY KEY (key_seq, slot)
      ) WITHOUT ROWID`,
      // Of a database with keys in it nobody has counted yet since when.
      `INSERT INTO counts (name, n) SELECT 'uses_since', 0 WHERE NOT EXISTS (SELECT 1 FROM ring_keys)`,
    ],
  },
  {
    name: 'second factors',
    statements: [
      `CREATE TABLE second_factors (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('totp', 'passkey')),
        data TEXT NOT NULL,
        credential_id TEXT UNIQUE,
        pending INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        used_at INTEGER
      )`,
      `CREATE INDEX second_factors_by_user ON second_factors (user_id, seq)`,
      `CREATE TABLE recovery_codes (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        code_hash TEXT NOT NULL,
        UNIQUE (user_id, code_hash)
      )`,
      // Those that were used, each until it is good for nothing anyhow.
      `CREATE TABLE passkey_challenges (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        challenge TEXT NOT NULL UNIQUE,
        expires_at INTEGER NOT NULL
      )`,
      `CREATE INDEX passkey_challenges_by_expiry ON passkey_challenges (expires_at)`,
    ],
  },
  {
    name: 'logins by OpenID Connect',
    statements: [
      // One row at most.
      `CREATE TABLE oidc_providers (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        settings TEXT NOT NULL,
        changed_at INTEGER NOT NULL
      )`,
      // Who a user is at the provider, and the flags that its claims gave at the last login.
      `CREATE TABLE oidc_users (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        user_id TEXT NOT NULL UNIQUE REFERENCES users (id) ON DELETE CASCADE,
        issuer TEXT NOT NULL,
        subject TEXT NOT NULL,
        granted TEXT NOT NULL,
        UNIQUE (issuer, subject)
      )`,
    ],
  },
  {
    name: 'sessions that an identity provider opened',
    statements: [`ALTER TABLE sessions ADD COLUMN by_provider INTEGER NOT NULL DEFAULT 0`],
  },
  {
    name: 'rings whose keys the appliance holds',
    statements: [
      `CREATE TABLE transit_rings (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        display_name TEXT NOT NULL,
        type TEXT NOT NULL,
        derived INTEGER NOT NULL,
        latest_version INTEGER NOT NULL,
        min_decryption INTEGER NOT NULL,
        min_encryption INTEGER NOT NULL,
        deletion_allowed INTEGER NOT NULL,
        rotate_after INTEGER,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        deleted_at INTEGER
      )`,
      `CREATE UNIQUE INDEX transit_rings_by_name ON transit_rings (name) WHERE deleted_at IS NULL`,
      `CREATE INDEX transit_rings_listed ON transit_rings (seq) WHERE deleted_at IS NULL`,
      `CREATE INDEX transit_rings_deleted ON transit_rings (deleted_at) WHERE deleted_at IS NOT NULL`,
      // `epoch` counts the tenant keys: under which one `sealed` is.
      `CREATE TABLE transit_keys (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        ring_id TEXT NOT NULL REFERENCES transit_rings (id) ON DELETE CASCADE,
        version INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        sealed TEXT NOT NULL,
        public_key TEXT NOT NULL,
        message_count INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        UNIQUE (ring_id, version)
      )`,
      `CREATE INDEX transit_keys_by_epoch ON transit_keys (epoch)`,
    ],
  },
  {
    name: 'rings whose files open without the appliance',
    statements: [`ALTER TABLE rings ADD COLUMN offline_decrypt INTEGER NOT NULL DEFAULT 0`],
  },
  {
    name: 'key pairs for Tang clients',
    statements: [
      // `thumbprint` is of the key that signs, `exchange` of the other one; `epoch` as above.
      `CREATE TABLE tang_pairs (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        thumbprint TEXT NOT NULL UNIQUE,
        thumbprint_s1 TEXT NOT NULL,
        exchange TEXT NOT NULL,
        exchange_s1 TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        sealed TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        rotated_at INTEGER,
        recoveries INTEGER NOT NULL,
        recovered_at INTEGER
      )`,
    ],
  },
  {
    name: 'rings that change their key pair',
    statements: [
      // The pairs of a ring are counted from 0: which one the ring has now, and which one a key is wrapped to.
      `ALTER TABLE rings ADD COLUMN pair INTEGER NOT NULL DEFAULT 0`,
      `ALTER TABLE ring_keys ADD COLUMN pair INTEGER NOT NULL DEFAULT 0`,
      `ALTER TABLE ring_keys ADD COLUMN kem TEXT NOT NULL DEFAULT 'x25519'`,
      // Those before, to which keys of the ring are wrapped.
      `CREATE TABLE ring_pairs (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        ring_id TEXT NOT NULL REFERENCES rings (id) ON DELETE CASCADE,
        pair INTEGER NOT NULL,
        kem TEXT NOT NULL,
        public_key TEXT NOT NULL,
        UNIQUE (ring_id, pair)
      )`,
    ],
  },
];

/** The ten characters with which a ULID begins, from the milliseconds in a column. */
function ulidTime(column: string): string {
  const digits = [45, 40, 35, 30, 25, 20, 15, 10, 5, 0].map(
    (shift) => `substr('0123456789abcdefghjkmnpqrstvwxyz', ((${column} >> ${shift}) & 31) + 1, 1)`,
  );
  return digits.join(' || ');
}

export const systemMigrations: readonly Migration[] = [
  {
    name: 'tenants',
    statements: [
      // `dir` is the random name of the tenant's directory: no name or id of a tenant is on disk in clear.
      `CREATE TABLE tenants (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        dir TEXT NOT NULL UNIQUE,
        hosts TEXT NOT NULL,
        limits TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        deleted_at INTEGER
      )`,
      `CREATE UNIQUE INDEX tenants_by_name ON tenants (name) WHERE deleted_at IS NULL`,
    ],
  },
  {
    name: 'settings',
    statements: [
      `CREATE TABLE settings (seq INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, value TEXT NOT NULL)`,
    ],
  },
  {
    name: 'marks',
    statements: [
      // How far each tenant's store was; `dir` as in `tenants`.
      `CREATE TABLE marks (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        dir TEXT NOT NULL UNIQUE,
        sequence INTEGER NOT NULL,
        runs TEXT NOT NULL,
        noted_at INTEGER NOT NULL
      )`,
    ],
  },
  {
    name: 'whose logins need a second factor',
    statements: [
      // Names of flags: users who have one of them.
      `ALTER TABLE tenants ADD COLUMN second_factor_for TEXT NOT NULL DEFAULT '[]'`,
    ],
  },
  {
    name: 'who may hold the keys of a tenant',
    statements: [
      // Of rings to come.
      `ALTER TABLE tenants ADD COLUMN custody TEXT NOT NULL DEFAULT 'any'`,
    ],
  },
];

/** Refuses a database that a newer program made; `where` names it. */
export function refuseNewer(version: number, migrations: readonly Migration[], where: string): void {
  if (version <= migrations.length) return;
  throw new KmsError(
    'refused',
    `${where} has schema version ${version}, this program knows versions up to ${migrations.length}`,
    { hint: 'use the newer program that wrote it' },
  );
}

/** Runs the missing steps; true when there were any. What they wrote is in `session.written`. */
export async function migrate<T extends object>(
  state: State,
  session: Session<T>,
  migrations: readonly Migration[],
): Promise<boolean> {
  const done = state.schemaVersion;
  if (done >= migrations.length) return false;
  await session.run(async () => {
    for (const migration of migrations.slice(done)) {
      for (const statement of migration.statements) session.write(statement, []);
    }
    session.write(`PRAGMA user_version = ${migrations.length}`, []);
  });
  return true;
}
