// The first steps of the schema of a tenant's database: rings with their keys and assets, accounts with their API keys,
// users with their sessions. Later and new steps belong in migrations.ts.
export const firstSteps = [
  {
    name: 'rings, keys, assets, accounts, API keys',
    statements: [
      // `seq` is the order of creation, which lists and their cursors use.
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
      // The earlier versions, which older headers signed.
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
      // Children of a parent in order of creation, the order of search results.
      `CREATE INDEX asset_parents_by_parent ON asset_parents (parent_id, asset_seq)`,
      // Maintained on each change: counting a million assets at each encrypt would cost more than the encrypt.
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
      // The rings that a key's true flags name; a wildcard instead of the name is stored as '*'.
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
      // The `_key` columns hold the text without regard to case, which is unique and looked up. No password hash =
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
      // Ended and expired sessions stay a while, so that a later use of one can be attributed. `chain_started_at` is
      // the time of the login that its refreshes go back to.
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
      // The newest invite and the newest reset of each user; a used or replaced token has no row.
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
      // Spares lists and counts the deleted rings and those of the other service.
      `CREATE INDEX rings_listed ON rings (service, seq) WHERE deleted_at IS NULL`,
      // The keys that name a ring, in list order.
      `ALTER TABLE api_key_rings ADD COLUMN apikey_seq INTEGER`,
      `UPDATE api_key_rings SET apikey_seq = (SELECT seq FROM api_keys WHERE id = apikey_id)`,
      `DROP INDEX api_key_rings_by_name`,
      `CREATE INDEX api_key_rings_by_name ON api_key_rings (ring_name, apikey_seq)`,
      // The key ids in an answer about a user, in order: 100,000 of them take 20 ms, where the rows took 90.
      `DROP INDEX api_keys_by_user`,
      `CREATE INDEX api_keys_by_user ON api_keys (user_id, seq, id) WHERE user_id IS NOT NULL`,
      // Only active keys, and users with a password.
      `DROP INDEX api_keys_holding_all`,
      `DROP INDEX users_holding_all`,
      `CREATE INDEX api_keys_holding_all ON api_keys (seq) WHERE json_extract(flags, '$."*"') = 1 AND active = 1`,
      `CREATE INDEX users_holding_all ON users (seq) WHERE json_extract(flags, '$."*"') = 1 AND password_hash IS NOT NULL`,
      // Without this index, deleting an asset reads the parents of all assets.
      `CREATE INDEX asset_parents_by_asset ON asset_parents (asset_seq)`,
    ],
  },
  {
    name: 'ids of sessions, and when and from where they were used',
    statements: [
      `ALTER TABLE sessions ADD COLUMN id TEXT NOT NULL DEFAULT ''`,
      `ALTER TABLE sessions ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0`,
      `ALTER TABLE sessions ADD COLUMN address TEXT`,
      // Existing sessions get a ULID of the login's time, with the row's number instead of random bits.
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
      // Until now a key belonged to the user who made it, and to no user if a key or the administrator made it.
      `UPDATE api_keys SET created_by = user_id WHERE user_id IS NOT NULL`,
      // A separate table: writing to it does not empty the cache of keys.
      `CREATE TABLE api_key_uses (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        apikey_id TEXT NOT NULL UNIQUE REFERENCES api_keys (id) ON DELETE CASCADE,
        used_at INTEGER NOT NULL
      )`,
      // Ordered by expiry, to find keys that never expire, and keys that expire after a given time.
      `DROP INDEX api_keys_holding_all`,
      `CREATE INDEX api_keys_holding_all ON api_keys (expires_at) WHERE json_extract(flags, '$."*"') = 1 AND active = 1`,
      `ALTER TABLE users ADD COLUMN last_login_at INTEGER`,
      // Only sessions that are still stored count.
      `UPDATE users SET last_login_at = (SELECT MAX(chain_started_at) FROM sessions WHERE user_id = users.id)`,
    ],
  },
];

/** SQL for the first ten characters of a ULID, from the milliseconds in a column. */
function ulidTime(column: string): string {
  const digits = [45, 40, 35, 30, 25, 20, 15, 10, 5, 0].map(
    (shift) => `substr('0123456789abcdefghjkmnpqrstvwxyz', ((${column} >> ${shift}) & 31) + 1, 1)`,
  );
  return digits.join(' || ');
}
