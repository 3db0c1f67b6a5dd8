// The tenant that `kms tenant use` chose for each data directory, in a file that only its user can write.
import { readFile, realpath, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isJsonObject, jsonOf } from '../model/json.ts';
import type { Cli } from './command.ts';
import { fileError } from './files.ts';
import { configDirectory, type Io } from './io.ts';
import { dataDirectory } from './target.ts';

/** The tenant of a command for this machine: the named one, else the chosen one; undefined for the only one. */
export async function localTenant(cli: Cli): Promise<string | undefined> {
  return cli.globals.get('--tenant') ?? (await chosenTenant(cli));
}

/** Undefined if none was chosen for the command's data directory, or there is no configuration directory. */
export async function chosenTenant(cli: Cli): Promise<string | undefined> {
  const data = await realpath(await dataDirectory(cli)).catch(() => undefined);
  return data === undefined ? undefined : (await chosenTenants(cli.io)).get(data);
}

/** `tenant` undefined: none is chosen any more. */
export async function chooseTenant(cli: Cli, tenant: string | undefined): Promise<void> {
  const chosen = await chosenTenants(cli.io);
  const data = await realpath(await dataDirectory(cli));
  if (tenant === undefined) chosen.delete(data);
  else chosen.set(data, tenant);
  const path = tenantsPath(cli.io);
  const { makeDirs } = await import('../platform/data-dir.ts');
  try {
    await makeDirs(configDirectory(cli.io));
    await writeFile(`${path}.tmp`, `${JSON.stringify(Object.fromEntries(chosen), null, 2)}\n`, { mode: 0o600 });
    await rename(`${path}.tmp`, path);
  } catch (error) {
    throw fileError('write', path, error);
  }
}

/** By the real path of the data directory. */
async function chosenTenants(io: Io): Promise<Map<string, string>> {
  let text: string;
  try {
    text = await readFile(tenantsPath(io), 'utf8');
  } catch {
    return new Map();
  }
  const read = jsonOf(text);
  const entries = Object.entries(isJsonObject(read) ? read : {});
  return new Map(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}

function tenantsPath(io: Io): string {
  return join(configDirectory(io), 'tenants.json');
}
