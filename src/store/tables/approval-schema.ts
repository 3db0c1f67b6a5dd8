// Approvals: the step that makes their tables. Statements of a released step never change.
export const approvalSchema: readonly string[] = [
  // `terms` are the rule's own fields in JSON; `vouched` are ids of Users whom its maker stood for, each with the
  // number of the last way in (`ways_in`) that there was then, and `awaits` the number of those who are to come.
  `CREATE TABLE approval_rules (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    terms TEXT NOT NULL,
    props TEXT NOT NULL,
    vouched TEXT NOT NULL,
    awaits INTEGER NOT NULL,
    expires_at INTEGER,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    updated_at INTEGER NOT NULL
  )`,
  // `act` is the hash of who does what to what: of each there is one request at most that is open. `details` is long,
  // and last, so that the other columns are read without it.
  `CREATE TABLE approval_requests (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    act TEXT NOT NULL,
    requester TEXT NOT NULL,
    operation TEXT NOT NULL,
    holder TEXT NOT NULL,
    state TEXT NOT NULL,
    terms TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    granted_at INTEGER,
    ends_at INTEGER NOT NULL,
    ended_at INTEGER,
    uses INTEGER NOT NULL,
    words INTEGER NOT NULL,
    broken_by TEXT,
    details TEXT NOT NULL
  )`,
  `CREATE UNIQUE INDEX approval_requests_open ON approval_requests (act) WHERE ended_at IS NULL`,
  `CREATE INDEX approval_requests_answered ON approval_requests (requester, operation)
    WHERE ended_at IS NULL AND (words > 0 OR broken_by IS NOT NULL)`,
  `CREATE INDEX approval_requests_due ON approval_requests (ends_at) WHERE ended_at IS NULL`,
  `CREATE INDEX approval_requests_of ON approval_requests (requester)`,
  `CREATE INDEX approval_requests_held ON approval_requests (holder, ends_at) WHERE ended_at IS NULL`,
  `CREATE INDEX approval_requests_made ON approval_requests (holder, created_at)`,
  `CREATE INDEX approval_requests_ended ON approval_requests (holder, ended_at) WHERE ended_at IS NOT NULL`,
  `CREATE INDEX approval_requests_by_end ON approval_requests (ended_at) WHERE ended_at IS NOT NULL`,
  // For API keys and Users that were made by others than administrators: whose requests theirs are counted with.
  `CREATE TABLE approval_holders (
    id TEXT PRIMARY KEY,
    holder TEXT NOT NULL
  )`,
  `CREATE TABLE approval_words (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    verdict TEXT NOT NULL,
    at INTEGER NOT NULL,
    factor_id TEXT NOT NULL,
    factor_kind TEXT NOT NULL,
    signed INTEGER NOT NULL,
    reason TEXT,
    UNIQUE (request_id, user_id)
  )`,
  `CREATE INDEX approval_words_of ON approval_words (user_id)`,
  // SHA-256 of the credential, and of the public key, of each passkey that signed a word. They outlive it and its User.
  `CREATE TABLE approval_signers (
    mark TEXT PRIMARY KEY,
    user_id TEXT NOT NULL
  )`,
  `CREATE TABLE broken_glass (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    broken_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    action TEXT NOT NULL,
    object TEXT,
    request_id TEXT,
    persons TEXT NOT NULL,
    acknowledged_at INTEGER,
    acknowledged_by TEXT
  )`,
  `CREATE INDEX broken_glass_of ON broken_glass (request_id) WHERE request_id IS NOT NULL`,
  `CREATE INDEX broken_glass_open ON broken_glass (seq) WHERE acknowledged_at IS NULL`,
  // Callers that were given a way into an API key or a User's account. `first`, `last` and `reach` are numbers like
  // `seq`, and null where they are the same: of the first and the last way, and up to which others could be the caller.
  `CREATE TABLE ways_in (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    identity TEXT NOT NULL,
    who TEXT NOT NULL,
    first INTEGER,
    last INTEGER,
    reach INTEGER,
    UNIQUE (identity, who)
  )`,
  `CREATE INDEX ways_in_of ON ways_in (who)`,
  // For API keys that are there already, owner, maker and makers of proofs are known, though not in which order.
  `INSERT INTO ways_in (identity, who, first) SELECT id, user_id, 0 FROM api_keys WHERE user_id IS NOT NULL
    UNION SELECT id, created_by, 0 FROM api_keys WHERE created_by IS NOT NULL
    UNION SELECT apikey_id, created_by, 0 FROM api_key_proofs WHERE created_by IS NOT NULL`,
  // The second factor that the session last proved, and when.
  `ALTER TABLE sessions ADD COLUMN factor_id TEXT`,
  `ALTER TABLE sessions ADD COLUMN factor_at INTEGER`,
];
