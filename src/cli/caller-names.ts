// Names of callers in place of their ids, for people at a terminal: those of API keys and users, asked for once for a
// whole list. Elsewhere, and with --wide, ids stay: programs look for them, and leave no record of a listing.
import type { Client } from '../client/client.ts';
import type { Cli } from './command.ts';

/** The name of a caller; undefined if it has none, or if the names may not be listed. */
type CallerName = (caller: string) => string | undefined;

/** Names of all API keys and users that the caller may list. */
export async function callerNames(client: Client): Promise<CallerName> {
  const { apikeys = [], users = [] } = await client.getNames().catch(() => ({ apikeys: undefined, users: undefined }));
  const names = new Map([
    ...apikeys.map(({ keyid, name }) => [keyid, name] as const),
    ...users.map(({ id, username }) => [id, username] as const),
  ]);
  return (caller) => names.get(caller) || undefined;
}

const idForm = /^(?:apik|user)_/;

/** Names of callers that a list has shown so far. */
export class Callers {
  readonly #cli: Cli;
  readonly #client: Client;
  /** Ids that were asked for, with their names. */
  readonly #names = new Map<string, string | undefined>();

  constructor(cli: Cli, client: Client) {
    this.#cli = cli;
    this.#client = client;
  }

  /** Asks for names if one of the callers is new and people read them. */
  async meet(callers: readonly (string | null | undefined)[]): Promise<void> {
    const { json, globals, io } = this.#cli;
    if (json || globals.get('--wide') || !io.stdout.isTTY) return;
    const fresh = callers.flatMap((each) => (each && idForm.test(each) && !this.#names.has(each) ? [each] : []));
    if (fresh.length === 0) return;
    const nameOf = await callerNames(this.#client);
    for (const caller of fresh) this.#names.set(caller, nameOf(caller));
  }

  /** The name, else the id. */
  shown(caller: string): string {
    return this.#names.get(caller) ?? caller;
  }

  /** The name with the id, else the id alone. */
  whole(caller: string): string {
    const name = this.#names.get(caller);
    return name === undefined ? caller : `${name} (${caller})`;
  }
}
