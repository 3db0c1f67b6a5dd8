// Proofs of API keys, and the sessions that they open: the step that makes their tables. Statements of a released step
// never change.
export const proofSchema: readonly string[] = [
  `CREATE TABLE api_key_proofs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    apikey_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    active INTEGER NOT NULL,
    -- What requests find the proof by: an access key id, the hash of a certificate's public key, an issuer; 'san ' and
    -- a name in certificates that some authority signs.
    subject TEXT,
    settings TEXT NOT NULL,
    -- A secret that the appliance must be able to read, under the tenant's key of that epoch.
    epoch INTEGER,
    sealed TEXT,
    created_at INTEGER NOT NULL,
    created_by TEXT
  )`,
  `CREATE INDEX api_key_proofs_by_key ON api_key_proofs (apikey_id, seq)`,
  `CREATE INDEX api_key_proofs_by_subject ON api_key_proofs (kind, subject, seq)`,
  `CREATE UNIQUE INDEX api_key_proofs_alone ON api_key_proofs (kind, subject)
    WHERE kind IN ('aws', 'certificate') AND substr(subject, 1, 4) <> 'san '`,
  // Apart, so that a use does not make every remembered proof be read again.
  `CREATE TABLE api_key_proof_uses (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    proof_id TEXT NOT NULL UNIQUE,
    used_at INTEGER NOT NULL
  )`,
  `CREATE TABLE workload_sessions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    token_hash TEXT NOT NULL UNIQUE,
    id TEXT NOT NULL UNIQUE,
    apikey_id TEXT NOT NULL,
    proof_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    -- Hash of the public key of the certificate that every request must come with, if it is bound to one.
    bound_to TEXT,
    details TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    last_expiry INTEGER NOT NULL,
    ended_at INTEGER
  )`,
  `CREATE INDEX workload_sessions_by_key ON workload_sessions (apikey_id, seq)`,
  `CREATE INDEX workload_sessions_by_proof ON workload_sessions (proof_id, seq)`,
  `CREATE INDEX workload_sessions_by_expiry ON workload_sessions (expires_at)`,
  // Tokens that may be used once, until they expire.
  `CREATE TABLE used_tokens (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    issuer TEXT NOT NULL,
    token TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    UNIQUE (issuer, token)
  )`,
  `CREATE INDEX used_tokens_by_expiry ON used_tokens (expires_at)`,
  // Certificates of the authority that issues client certificates, by the version of its managed key.
  `CREATE TABLE client_authorities (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    key_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    certificate TEXT NOT NULL,
    UNIQUE (key_id, version)
  )`,
  // Programs may log in by the name of an API key.
  `CREATE INDEX api_keys_by_name ON api_keys (name, seq) WHERE name <> ''`,
];
