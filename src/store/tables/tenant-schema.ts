// The tables of a tenant's database, as 0.1.0 makes them: rings with their keys and assets, accounts with their API
// keys, users with their sessions and second factors, transit rings, Tang key pairs. A change is a further step in
// migrations.ts; what stands here never changes.
//
// `seq` is the order of creation: lists and their cursors follow it. Times are epoch milliseconds. An `epoch` says
// which of the tenant's keys the `sealed` column beside it is sealed with.

export const tenantSchema: readonly string[] = [
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
    -- Key pairs of a ring are counted from 0: the one that it has now.
    pair INTEGER NOT NULL DEFAULT 0,
    offline_decrypt INTEGER NOT NULL DEFAULT 0,
    props TEXT NOT NULL,
    key_props TEXT NOT NULL,
    max_encrypt_count INTEGER NOT NULL,
    -- Whole seconds.
    rotate_after INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
  )`,
  `CREATE UNIQUE INDEX rings_by_name ON rings (service, name) WHERE deleted_at IS NULL`,
  `CREATE INDEX rings_deleted ON rings (deleted_at) WHERE deleted_at IS NOT NULL`,
  // Listing and counting one service's rings skips deleted ones and those of the other service.
  `CREATE INDEX rings_listed ON rings (service, seq) WHERE deleted_at IS NULL`,
  `CREATE INDEX rings_listed_deleted ON rings (service, seq) WHERE deleted_at IS NOT NULL`,
  // Earlier key pairs of a ring, which its keys may be wrapped to.
  `CREATE TABLE ring_pairs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    ring_id TEXT NOT NULL REFERENCES rings (id) ON DELETE CASCADE,
    pair INTEGER NOT NULL,
    kem TEXT NOT NULL,
    public_key TEXT NOT NULL,
    UNIQUE (ring_id, pair)
  )`,
  `CREATE TABLE ring_keys (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    ring_id TEXT NOT NULL REFERENCES rings (id) ON DELETE CASCADE,
    algorithm TEXT NOT NULL,
    -- The pair that the key is wrapped to.
    kem TEXT NOT NULL,
    pair INTEGER NOT NULL,
    wrapped TEXT NOT NULL,
    iv TEXT NOT NULL,
    -- Rows that the key has in earlier_wrappings.
    rewraps INTEGER NOT NULL DEFAULT 0,
    props TEXT NOT NULL,
    encrypt_count INTEGER NOT NULL,
    created_at INTEGER NOT NULL
  )`,
  `CREATE INDEX ring_keys_by_ring ON ring_keys (ring_id, seq)`,
  // Earlier wrappings of a key. A wrapping only leaves the table to become the current one again.
  `CREATE TABLE earlier_wrappings (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    key_seq INTEGER NOT NULL REFERENCES ring_keys (seq) ON DELETE CASCADE,
    kem TEXT NOT NULL,
    pair INTEGER NOT NULL,
    wrapped TEXT NOT NULL,
    iv TEXT NOT NULL,
    replaced_at INTEGER NOT NULL
  )`,
  `CREATE INDEX earlier_wrappings_by_key ON earlier_wrappings (key_seq, seq)`,
  // The latest use of each kind: 'e'ncrypt, 'd'ecrypt.
  `CREATE TABLE key_uses (
    key_seq INTEGER NOT NULL REFERENCES ring_keys (seq) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    used_at INTEGER NOT NULL,
    used_by TEXT NOT NULL,
    PRIMARY KEY (key_seq, kind)
  ) WITHOUT ROWID`,
  // Uses by day since 1970, UTC. A day reuses the row of the day a hundred days before.
  `CREATE TABLE key_days (
    key_seq INTEGER NOT NULL REFERENCES ring_keys (seq) ON DELETE CASCADE,
    slot INTEGER NOT NULL,
    day INTEGER NOT NULL,
    encrypts INTEGER NOT NULL,
    decrypts INTEGER NOT NULL,
    PRIMARY KEY (key_seq, slot)
  ) WITHOUT ROWID`,
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
  // Versions before the current one, which older headers signed.
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
  // Without this index, deleting an asset reads the parents of all assets.
  `CREATE INDEX asset_parents_by_asset ON asset_parents (asset_seq)`,
  // Kept up to date, since counting a million assets at each encrypt would cost more than the encrypt.
  `CREATE TABLE counts (seq INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, n INTEGER NOT NULL)`,
  `INSERT INTO counts (name, n) VALUES ('assets', 0), ('asset_versions', 0)`,
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
    name TEXT NOT NULL,
    active INTEGER NOT NULL,
    expires_at INTEGER,
    addresses TEXT NOT NULL,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    user_id TEXT,
    flags TEXT NOT NULL,
    props TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT,
    updated_at INTEGER NOT NULL
  )`,
  `CREATE INDEX api_keys_by_account ON api_keys (account_id, seq)`,
  // Covers the key ids in an answer about a user: 100,000 of them take 20 ms, where the rows took 90.
  `CREATE INDEX api_keys_by_user ON api_keys (user_id, seq, id) WHERE user_id IS NOT NULL`,
  // Active keys that may do everything, by expiry. Nearly always a row or two, however many keys there are.
  `CREATE INDEX api_keys_holding_all ON api_keys (expires_at) WHERE json_extract(flags, '$."*"') = 1 AND active = 1`,
  // Rings that a key's true flags name; '*' stands for a wildcard instead of a name.
  `CREATE TABLE api_key_rings (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    apikey_id TEXT NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
    apikey_seq INTEGER NOT NULL,
    ring_name TEXT NOT NULL,
    UNIQUE (apikey_id, ring_name)
  )`,
  // Keys that name a ring, in list order.
  `CREATE INDEX api_key_rings_by_name ON api_key_rings (ring_name, apikey_seq)`,
  // A table of its own, since a write to api_keys empties the cache of keys.
  `CREATE TABLE api_key_uses (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    apikey_id TEXT NOT NULL UNIQUE REFERENCES api_keys (id) ON DELETE CASCADE,
    used_at INTEGER NOT NULL
  )`,
  // The `_key` columns are unique and looked up: the text in lower case. A user without a password hash was invited
  // and has not accepted yet.
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
    last_login_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
  )`,
  `CREATE INDEX users_holding_all ON users (seq)
    WHERE json_extract(flags, '$."*"') = 1 AND password_hash IS NOT NULL`,
  // Ended and expired sessions stay a while, so that a late use of one can still be attributed. `chain_started_at` is
  // the time of the login that the refreshes go back to.
  `CREATE TABLE sessions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    token_hash TEXT NOT NULL UNIQUE,
    user_id TEXT NOT NULL,
    by_provider INTEGER NOT NULL,
    chain_started_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ended_at INTEGER,
    used_at INTEGER NOT NULL,
    address TEXT
  )`,
  `CREATE INDEX sessions_open ON sessions (user_id) WHERE ended_at IS NULL`,
  `CREATE INDEX sessions_by_expiry ON sessions (expires_at)`,
  `CREATE INDEX sessions_by_user ON sessions (user_id, seq)`,
  // The newest invite and the newest reset of each user; a used or replaced token has no row.
  `CREATE TABLE user_tokens (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('invite', 'reset')),
    token_hash TEXT NOT NULL UNIQUE,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    expires_at INTEGER NOT NULL,
    UNIQUE (user_id, kind)
  )`,
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
  // Used challenges, each until it expires.
  `CREATE TABLE passkey_challenges (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    challenge TEXT NOT NULL UNIQUE,
    expires_at INTEGER NOT NULL
  )`,
  `CREATE INDEX passkey_challenges_by_expiry ON passkey_challenges (expires_at)`,
  // At most one row.
  `CREATE TABLE oidc_providers (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    settings TEXT NOT NULL,
    changed_at INTEGER NOT NULL
  )`,
  // A user's identity at the provider, and the flags that its claims gave at the last login.
  `CREATE TABLE oidc_users (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id TEXT NOT NULL UNIQUE REFERENCES users (id) ON DELETE CASCADE,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    granted TEXT NOT NULL,
    UNIQUE (issuer, subject)
  )`,
  // Rings whose keys the appliance holds.
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
  // Key pairs for Tang clients: `thumbprint` is that of the signing key, `exchange` that of the exchange key.
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
];
