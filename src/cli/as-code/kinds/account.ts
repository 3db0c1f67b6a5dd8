// Accounts in configuration files: their name is the uid.
import type { Account } from '../../../api/accounts.ts';
import { items } from '../../../client/pages.ts';
import { KmsError } from '../../../errors.ts';
import type { Found, Kind } from '../kind.ts';
import { keepingMark, marked, unmarked } from '../mark.ts';

function foundOf({ id, uid, notes, props }: Account): Found {
  const { props: own, ...mark } = unmarked(props);
  return { id, name: uid, fields: { notes, props: own }, ...mark };
}

export const accountKind: Kind = {
  name: 'account',
  noun: ['account', 'accounts'],
  nameKey: (name) => name,
  references: () => [],
  canonical: (fields) => fields,
  async list({ client }) {
    const found: Found[] = [];
    for await (const account of items(client.listAccounts, { limit: 10_000 })) found.push(foundOf(account));
    return found;
  },
  async find({ client }, name) {
    try {
      return foundOf(await client.getAccount({ id: name, uid: true }));
    } catch (error) {
      if (error instanceof KmsError && error.code === 'not-found') return undefined;
      throw error;
    }
  },
  flagsFor: (wanted, found) => [`account.${wanted === undefined ? 'delete' : found ? 'update' : 'create'}`],
  secrets: () => [],
  async create({ client, managedBy }, { name, fields }) {
    await client.createAccount({ ...fields, uid: name, props: marked(fields.props, managedBy) });
  },
  async update({ client }, { fields }, found, differences) {
    const changed = new Set(differences.map(({ field }) => field));
    await client.updateAccount({
      id: found.id,
      ...(changed.has('notes') && { notes: String(fields.notes) }),
      ...(changed.has('props') && { props: keepingMark(fields.props, found) }),
    });
  },
  async remove({ client }, { id }) {
    await client.deleteAccount({ id });
  },
  exported: ({ fields: { notes, props } }) => ({
    ...(notes !== '' && { notes }),
    ...(Object.keys(Object(props)).length > 0 && { props }),
  }),
};
