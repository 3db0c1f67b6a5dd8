// The tables of managed keys, which take the place of those of transit rings: the step that makes them and moves what
// is there. Ids stay, since messages and sealed keys are bound to them. Statements of a released step never change.
export const managedKeySchema: readonly string[] = [
  // `uses` are words with a space between. `path` is where KV clients find a secret, as they wrote it. States are those
  // of model/key-states.ts, without the effect of the dates.
  `CREATE TABLE managed_keys (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    display_name TEXT NOT NULL,
    path TEXT,
    type TEXT NOT NULL,
    uses TEXT NOT NULL,
    state TEXT NOT NULL,
    former_state TEXT,
    derived INTEGER NOT NULL,
    exportable INTEGER NOT NULL,
    origin TEXT NOT NULL,
    vault_format INTEGER NOT NULL,
    latest_version INTEGER NOT NULL,
    min_decrypt INTEGER NOT NULL,
    min_encrypt INTEGER NOT NULL,
    deletion_allowed INTEGER NOT NULL,
    rotate_after INTEGER,
    tags TEXT NOT NULL,
    props TEXT NOT NULL,
    activate_at INTEGER,
    deactivate_at INTEGER,
    deleted_at INTEGER,
    destroy_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
  )`,
  `INSERT INTO managed_keys (seq, id, name, display_name, type, uses, state, former_state, derived, exportable, origin,
    vault_format, latest_version, min_decrypt, min_encrypt, deletion_allowed, rotate_after, tags, props, activate_at,
    deactivate_at, deleted_at, destroy_at, created_at, updated_at)
    SELECT seq, id, name, display_name,
      CASE type WHEN 'aes256-gcm96' THEN 'aes256-gcm' ELSE type END,
      CASE type WHEN 'aes256-gcm96' THEN 'encrypt decrypt' WHEN 'chacha20-poly1305' THEN 'encrypt decrypt'
        ELSE 'sign verify' END,
      CASE WHEN deleted_at IS NULL THEN 'active' ELSE 'pending-deletion' END,
      CASE WHEN deleted_at IS NULL THEN NULL ELSE 'active' END,
      derived, 0, 'generated', 0, latest_version, min_decryption, min_encryption, deletion_allowed, rotate_after, '{}',
      '{}', NULL, NULL, deleted_at,
      CASE WHEN deleted_at IS NULL THEN NULL ELSE deleted_at + 2592000000 END,
      created_at, updated_at
      FROM transit_rings`,
  `CREATE UNIQUE INDEX managed_keys_by_name ON managed_keys (name) WHERE deleted_at IS NULL`,
  `CREATE UNIQUE INDEX managed_keys_by_path ON managed_keys (path) WHERE path IS NOT NULL AND deleted_at IS NULL`,
  `CREATE INDEX managed_keys_by_former_name ON managed_keys (name, deleted_at) WHERE deleted_at IS NOT NULL`,
  `CREATE INDEX managed_keys_listed ON managed_keys (seq) WHERE deleted_at IS NULL`,
  `CREATE INDEX managed_keys_deleted ON managed_keys (deleted_at) WHERE deleted_at IS NOT NULL`,
  `CREATE INDEX managed_keys_to_destroy ON managed_keys (destroy_at) WHERE destroy_at IS NOT NULL`,
  // An empty `sealed` is of a version whose key was destroyed, or of which only the public key is known.
  `CREATE TABLE managed_key_versions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    key_id TEXT NOT NULL REFERENCES managed_keys (id) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    state TEXT NOT NULL,
    former_state TEXT,
    origin TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    sealed TEXT NOT NULL,
    public_key TEXT NOT NULL,
    message_count INTEGER NOT NULL,
    deleted_at INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (key_id, version)
  )`,
  `INSERT INTO managed_key_versions (seq, id, key_id, version, state, former_state, origin, epoch, sealed, public_key,
    message_count, deleted_at, created_at)
    SELECT seq, id, ring_id, version, 'active', NULL, 'generated', epoch, sealed, public_key, message_count, NULL,
      created_at
      FROM transit_keys`,
  `CREATE INDEX managed_key_versions_by_epoch ON managed_key_versions (epoch) WHERE sealed != ''`,
  `CREATE TABLE managed_key_aliases (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    alias TEXT NOT NULL UNIQUE,
    key_id TEXT NOT NULL REFERENCES managed_keys (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL
  )`,
  `CREATE INDEX managed_key_aliases_by_key ON managed_key_aliases (key_id, alias)`,
  // Callers by the version that they used, the dialect, and what for.
  `CREATE TABLE managed_key_uses (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    key_id TEXT NOT NULL REFERENCES managed_keys (id) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    caller TEXT NOT NULL,
    dialect TEXT NOT NULL,
    operation TEXT NOT NULL,
    count INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    UNIQUE (key_id, version, caller, dialect, operation)
  )`,
  // To which keys are wrapped for import: one a day.
  `CREATE TABLE wrapping_keys (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    epoch INTEGER NOT NULL,
    sealed TEXT NOT NULL,
    public_key TEXT NOT NULL,
    created_at INTEGER NOT NULL
  )`,
  `DROP TABLE transit_keys`,
  `DROP TABLE transit_rings`,
];
