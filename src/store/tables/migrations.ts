// The schema of a tenant's database and of the appliance's own, each as an ordered list of steps. A released step never
// changes; a change of the schema is a new step. Drivers keep the number of steps done in the snapshot and run the
// missing ones at start, in one transaction.
import { KmsError } from '../../errors.ts';
import type { Session, Written } from '../session.ts';
import { type LoggedStatement, openState, type State } from '../state.ts';
import { firstSteps } from './first-steps.ts';

export interface Migration {
  readonly name: string;
  readonly statements: readonly string[];
}

export const tenantMigrations: readonly Migration[] = [
  ...firstSteps,
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
      // By days since 1970, UTC. A day reuses the row of the day a hundred days before.
      `CREATE TABLE key_days (
        key_seq INTEGER NOT NULL REFERENCES ring_keys (seq) ON DELETE CASCADE,
        slot INTEGER NOT NULL,
        day INTEGER NOT NULL,
        encrypts INTEGER NOT NULL,
        decrypts INTEGER NOT NULL,
        PRIMARY KEY (key_seq, slot)
      ) WITHOUT ROWID`,
      // Only without keys: existing keys may have uses that were not counted.
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
      // Used challenges, each until it expires.
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
      // At most one row.
      `CREATE TABLE oidc_providers (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        settings TEXT NOT NULL,
        changed_at INTEGER NOT NULL
      )`,
      // The user's identity at the provider, and the flags that its claims gave at the last login.
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
      // `epoch` is the number of the tenant key that `sealed` is under.
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
      // `thumbprint` is that of the signing key, `exchange` that of the exchange key; `epoch` as above.
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
      // The key pairs of a ring are numbered from 0: the ring's current pair, and the pair that a key is wrapped to.
      `ALTER TABLE rings ADD COLUMN pair INTEGER NOT NULL DEFAULT 0`,
      `ALTER TABLE ring_keys ADD COLUMN pair INTEGER NOT NULL DEFAULT 0`,
      `ALTER TABLE ring_keys ADD COLUMN kem TEXT NOT NULL DEFAULT 'x25519'`,
      // The ring's earlier pairs, which keys may be wrapped to.
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
  {
    name: 'keys that are wrapped anew',
    statements: [
      // Number of times the key was wrapped again. The table below keeps its earlier wrappings.
      `ALTER TABLE ring_keys ADD COLUMN rewraps INTEGER NOT NULL DEFAULT 0`,
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
    ],
  },
];

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
      // The mark of each tenant's store; `dir` as in `tenants`.
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
      // Names of flags that make a second factor mandatory for the users who have one of them.
      `ALTER TABLE tenants ADD COLUMN second_factor_for TEXT NOT NULL DEFAULT '[]'`,
    ],
  },
  {
    name: 'who may hold the keys of a tenant',
    statements: [
      // Applies to new rings.
      `ALTER TABLE tenants ADD COLUMN custody TEXT NOT NULL DEFAULT 'any'`,
    ],
  },
];

/** Refuses a database made by a newer program; `where` names it. */
export function refuseNewer(version: number, migrations: readonly Migration[], where: string): void {
  if (version <= migrations.length) return;
  throw new KmsError(
    'refused',
    `${where} has schema version ${version}, this program knows versions up to ${migrations.length}`,
    { hint: 'use the newer program that wrote it' },
  );
}

/**
 * Runs the missing steps and returns what they wrote, valid until the next transaction; undefined if none is missing.
 */
export function migrate<T extends object>(
  state: State,
  session: Session<T>,
  migrations: readonly Migration[],
): Written | undefined {
  const done = state.schemaVersion;
  if (done >= migrations.length) return undefined;
  const texts = textsFrom(done, migrations);
  const image = state.isBlank ? blankAfter(texts) : undefined;
  if (image) {
    state.become(image);
    // One object per text, as in a session: the log numbers them.
    const byText = new Map(
      texts.map((text): [string, LoggedStatement] => [text, { text, logged: undefined, place: 0 }]),
    );
    const statements = texts.flatMap((text) => byText.get(text) ?? []);
    return { statements, params: texts.map(() => []), records: [], counts: [] };
  }
  session.run(() => {
    for (const text of texts) session.write(text, []);
  });
  return session.written;
}

function textsFrom(done: number, migrations: readonly Migration[]): string[] {
  const statements = migrations.slice(done).flatMap((each) => each.statements);
  return [...statements, `PRAGMA user_version = ${migrations.length}`];
}

/** The database after all steps on a blank one, as an SQLite image. Always the same bytes. */
export async function blankImage(wasm: Uint8Array, migrations: readonly Migration[]): Promise<Uint8Array> {
  const state = await openState(wasm);
  try {
    state.control('BEGIN');
    for (const text of textsFrom(0, migrations)) state.run(state.statement(text), []);
    state.control('COMMIT');
    return state.image();
  } finally {
    state.close();
  }
}

interface Blank {
  readonly texts: readonly string[];
  readonly image: Uint8Array;
}

let blanks: readonly Blank[] = [];

/**
 * Registers images that `blankImage` made of the same steps; undefined removes them. A new store, and one that is read
 * from its first log on, starts with the image instead of the statements, which would take 20 to 40 ms. The log has the
 * statements all the same.
 */
export function offerBlanks(images: Readonly<Record<'tenant' | 'system', Uint8Array>> | undefined): void {
  blanks = images
    ? [
        { texts: textsFrom(0, tenantMigrations), image: images.tenant },
        { texts: textsFrom(0, systemMigrations), image: images.system },
      ]
    : [];
}

/** The image of a blank database after exactly these statements; undefined if none was offered. */
export function blankAfter(texts: readonly string[]): Uint8Array | undefined {
  const isThis = (blank: Blank): boolean =>
    blank.texts.length === texts.length && blank.texts.every((text, at) => text === texts[at]);
  return blanks.find(isThis)?.image;
}
