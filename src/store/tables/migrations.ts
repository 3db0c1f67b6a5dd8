// The schemas of the two kinds of databases, each as the ordered list of steps that make it. A released step never
// changes; a change of the schema is a new step. Stores keep the number of steps done in the snapshot, and run the
// missing ones at start in one transaction.
import { KmsError } from '../../errors.ts';
import type { Session, Written } from '../session.ts';
import { openState, type State } from '../state.ts';
import { approvalSchema } from './approval-schema.ts';
import { systemKeyFlags, tenantKeyFlags } from './key-flags.ts';
import { kmipSchema } from './kmip-schema.ts';
import { managedKeySchema } from './managed-key-schema.ts';
import { proofSchema } from './proof-schema.ts';
import { tenantSchema } from './tenant-schema.ts';

export interface Migration {
  readonly name: string;
  readonly statements: readonly string[];
}

export const tenantMigrations: readonly Migration[] = [
  { name: 'the tables of 0.1.0', statements: tenantSchema },
  { name: 'flags of managed keys', statements: tenantKeyFlags },
  { name: 'the tables of managed keys', statements: managedKeySchema },
  { name: 'the tables of proofs', statements: proofSchema },
  { name: 'aliases as they were given', statements: ['ALTER TABLE managed_key_aliases ADD COLUMN display_name TEXT'] },
  { name: "the tables of KMIP's objects", statements: kmipSchema },
  { name: 'the tables of approvals', statements: approvalSchema },
];

export const systemMigrations: readonly Migration[] = [
  {
    name: 'the tables of 0.1.0',
    statements: [
      // `dir` is the random name of the tenant's directory: no name or id of a tenant is on disk in clear.
      `CREATE TABLE tenants (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        dir TEXT NOT NULL UNIQUE,
        hosts TEXT NOT NULL,
        limits TEXT NOT NULL,
        -- Names of flags: users who have one of them need a second factor.
        second_factor_for TEXT NOT NULL DEFAULT '[]',
        -- Who may hold the keys of rings to come.
        custody TEXT NOT NULL DEFAULT 'any',
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        deleted_at INTEGER
      )`,
      `CREATE UNIQUE INDEX tenants_by_name ON tenants (name) WHERE deleted_at IS NULL`,
      `CREATE TABLE settings (seq INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, value TEXT NOT NULL)`,
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
  { name: 'flags of managed keys', statements: systemKeyFlags },
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

/** The schema after each number of steps. */
const schemas = new WeakMap<readonly Migration[], Map<number, readonly string[]>>();

/**
 * Refuses a database with other tables, indexes, triggers or views than those of the steps that it says were done: its
 * maker chose what a statement does. `where` names it.
 */
export async function needSchema(
  state: State,
  migrations: readonly Migration[],
  wasm: Uint8Array | ArrayBuffer,
  where: string,
): Promise<void> {
  const version = state.schemaVersion;
  const known = schemas.get(migrations) ?? new Map<number, readonly string[]>();
  schemas.set(migrations, known);
  const expected = known.get(version) ?? (await schemaAfter(migrations.slice(0, version), wasm));
  known.set(version, expected);
  const found = state.schema;
  const [more] = found.filter((each) => !expected.includes(each));
  const [less] = expected.filter((each) => !found.includes(each));
  const other = more ?? less;
  if (other === undefined && found.length === expected.length) return;
  const [type = '', name = ''] = other?.split(' ') ?? [];
  const problem = more === undefined ? 'lacks' : 'has';
  throw new KmsError('corrupt', `${where}: ${problem} the ${type} ${JSON.stringify(name.slice(0, 64))}, unlike kms`, {
    hint: 'no kms wrote it like that: find out who did; nothing was changed',
  });
}

async function schemaAfter(steps: readonly Migration[], wasm: Uint8Array | ArrayBuffer): Promise<readonly string[]> {
  const state = await openState(wasm);
  try {
    for (const text of steps.flatMap(({ statements }) => statements)) state.run(state.statement(text), []);
    return state.schema;
  } finally {
    state.close();
  }
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
  session.run(() => {
    for (const { statements } of migrations.slice(done)) for (const text of statements) session.write(text, []);
    session.write(`PRAGMA user_version = ${migrations.length}`, []);
  });
  return session.written;
}
