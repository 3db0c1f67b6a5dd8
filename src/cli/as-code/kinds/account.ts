// Accounts in configuration files: their name is the uid.
import type { Account } from '../../../api/accounts.ts';
import { items } from '../../../client/pages.ts';
import { KmsError } from '../../../errors.ts';
import { differing, present, withoutDefaults } from '../differing.ts';
import type { Found, Kind } from '../kind.ts';
import { keepingMark, marked, unmarked } from '../mark.ts';
import { waitsAs } from '../waiting.ts';

function foundOf({ id, uid, notes, props }: Account): Found {
  const { props: own, ...mark } = unmarked(props);
  return { id, name: uid, fields: { notes, props: own }, ...mark };
}

/** The result, or undefined if there is no such thing. */
export async function ifThere<T>(request: Promise<T>): Promise<T | undefined> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof KmsError && error.code === 'not-found') return undefined;
    throw error;
  }
}

/** Whether the caller may not see something. What waits for approval may be seen later: that is no plan yet. */
export function isHidden(error: unknown): error is KmsError {
  return error instanceof KmsError && error.code === 'forbidden' && waitsAs(error).length === 0;
}

/** The answer, or `unseen` if the caller may not have it. */
export async function ifAllowed<T>(request: Promise<T>): Promise<T | 'unseen'> {
  try {
    return await request;
  } catch (error) {
    if (isHidden(error)) return 'unseen';
    throw error;
  }
}

export const accountKind: Kind = {
  name: 'account',
  noun: ['account', 'accounts'],
  listFlag: 'account.read',
  nameKey: (name) => name,
  references: () => [],
  async list({ client }) {
    const found: Found[] = [];
    for await (const account of items(client.listAccounts, { limit: 10_000 })) found.push(foundOf(account));
    return found;
  },
  async find({ client }, name) {
    const account = await ifThere(client.getAccount({ id: name, uid: true }));
    return account && foundOf(account);
  },
  differences: (wanted, found) => differing(wanted.fields, found.fields),
  problems: () => [],
  flagsFor: (wanted, found) => [`account.${wanted === undefined ? 'delete' : found ? 'update' : 'create'}`],
  secrets: () => [],
  async create({ client, managedBy }, { name, fields }) {
    await client.createAccount({ ...fields, uid: name, props: marked(fields.props, managedBy) });
  },
  async update({ client }, { fields }, found, differences) {
    const changed = new Set(differences.map(({ field }) => field));
    const notes = changed.has('notes') ? String(fields.notes) : undefined;
    const props = changed.has('props') ? keepingMark(fields.props, found) : undefined;
    await client.updateAccount({ id: found.id, ...present({ notes, props }) });
  },
  async remove({ client }, { id }) {
    await client.deleteAccount({ id });
  },
  /** Its API keys would be deleted with it. */
  async keptBecause({ client }, { id }, { leaving, wanted }) {
    const keys = wanted.filter(({ kind, fields }) => kind === 'apikey' && fields.accountId !== undefined);
    const placed = new Set(keys.map(({ name }) => name));
    let staying = 0;
    for await (const key of items(client.listAccountApiKeys, { accountId: id, limit: 1000 })) {
      if (!leaving.has(key.keyid) && !placed.has(key.name)) staying++;
    }
    if (staying === 0) return undefined;
    return `it has ${staying === 1 ? 'an API key' : `${staying} API keys`} that would be deleted with it`;
  },
  exported: ({ fields }) => withoutDefaults(fields, { notes: '', props: {} }),
};
