// Brings a database's schema up to the program's: the missing steps, in one transaction that is logged like any other.
import { KmsError } from '../errors.ts';
import type { Migration } from './migrations.ts';
import type { Session } from './session.ts';
import type { State } from './state.ts';

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
