// Callers that depend on a managed key, as the command line shows them: in a table, and in short before the key goes.
import type { Dependent } from '../api/managed-keys.ts';
import type { Client } from '../client/client.ts';
import { callerNames } from './caller-names.ts';
import { type Column, table } from './table.ts';

/** A use of the key, with the caller's name if it has one. */
interface Use extends Dependent {
  readonly who: string;
}

/** Uses with the names of their callers, as far as the caller may look them up. */
export async function withNames(client: Client, dependents: readonly Dependent[]): Promise<readonly Use[]> {
  if (dependents.length === 0) return [];
  const nameOf = await callerNames(client);
  return dependents.map((use) => {
    const name = nameOf(use.caller);
    return { ...use, who: name === undefined ? use.caller : `${name} (${use.caller})` };
  });
}

export const useColumns: readonly Column<Use>[] = [
  { title: 'who', value: ({ who }) => who, short: true, name: true },
  { title: 'dialect', value: ({ dialect }) => dialect },
  { title: 'version', value: ({ version }) => version },
  { title: 'what for', value: ({ operation }) => operation },
  { title: 'last', value: ({ lastUsedAt }) => lastUsedAt, short: true },
  { title: 'times', value: ({ count }) => count, spare: true },
];

/** Uses shown before a question; more would push it off the screen. */
const mostShown = 10;

interface Choice {
  /** The version that goes; all of them if undefined. */
  readonly version?: number | undefined;
  /** Versions before this one go. */
  readonly before?: number | undefined;
  /** Width of the terminal. */
  readonly columns: number;
}

/** Lines on who uses the key, the most recent first. */
export async function dependentLines(
  client: Client,
  key: string,
  { version, before, columns }: Choice,
): Promise<readonly string[]> {
  const { dependents } = await client.listManagedKeyDependents({ key });
  const uses = dependents.filter((use) =>
    before === undefined ? version === undefined || use.version === version : use.version < before,
  );
  const what = versionsText(key, version, before);
  if (uses.length === 0) return [`No caller has ever used ${what}.`];
  const shown = await withNames(client, uses.slice(0, mostShown));
  const style = { columns, colour: false, short: { now: Date.now() } };
  const more = uses.length - shown.length;
  return [
    `Who uses ${what}:`,
    ...table(shown, useColumns, style).map((line) => `  ${line}`),
    ...(more > 0 ? [`  and ${more} more: see \`kms key dependents ${key}\``] : []),
  ];
}

function versionsText(key: string, version: number | undefined, before: number | undefined): string {
  if (before === undefined) return version === undefined ? key : `version ${version} of ${key}`;
  return before === 2 ? `version 1 of ${key}` : `versions of ${key} before ${before}`;
}
