// The closed table of permission flags and what each grants. Other names are allowed in `flags` and grant nothing.

export interface FlagEntry {
  /** With `<ringname>` where a ring's name stands. */
  readonly flag: string;
  readonly grants: string;
}

export const flagTable: readonly FlagEntry[] = [
  { flag: '*', grants: 'everything' },
  { flag: 'keyring.create', grants: 'make KeyRings' },
  { flag: 'keyring.list', grants: 'list KeyRings' },
  { flag: 'keyring.<ringname>.read', grants: 'read the ring, its keys and its config, resolve a hash or header of it' },
  { flag: 'keyring.<ringname>.encrypt', grants: 'encrypt with the ring, and make and update Assets that way' },
  { flag: 'keyring.<ringname>.decrypt', grants: 'decrypt what the ring encrypted' },
  { flag: 'keyring.<ringname>.rotate', grants: 'give the ring a new active key' },
  { flag: 'keyring.<ringname>.config', grants: "change the ring's config" },
  { flag: 'keyring.<ringname>.delete', grants: 'delete the ring, and restore it' },
  { flag: 'asym.create', grants: 'make asym KeyRings' },
  { flag: 'asym.<ringname>.read', grants: "read the asym ring's keys" },
  { flag: 'asym.<ringname>.rotate', grants: 'give the asym ring a new active key' },
  { flag: 'asset.read', grants: 'read Assets' },
  { flag: 'asset.search', grants: 'search Assets' },
  { flag: 'asset.delete', grants: 'delete Assets' },
  { flag: 'user.read', grants: 'read and list Users' },
  { flag: 'user.create', grants: 'make Users' },
  { flag: 'user.update', grants: 'change Users' },
  { flag: 'user.delete', grants: 'delete Users' },
  { flag: 'user.invite', grants: 'invite Users' },
  { flag: 'account.read', grants: 'read and list Accounts' },
  { flag: 'account.create', grants: 'make Accounts' },
  { flag: 'account.update', grants: 'change Accounts' },
  { flag: 'account.delete', grants: 'delete Accounts and their API keys' },
  { flag: 'apikey.read', grants: 'read API keys and list them: all, by Account, by KeyRing' },
  { flag: 'apikey.create', grants: 'make API keys' },
  { flag: 'apikey.update', grants: 'change API keys' },
  { flag: 'apikey.delete', grants: 'delete API keys' },
  { flag: 'apikey.validate', grants: 'ask whether an API key is valid' },
  { flag: 'activity.read', grants: 'read and search activity' },
  { flag: 'system.metrics', grants: 'read metrics' },
  { flag: 'system.backup', grants: 'take an online backup' },
];

const ringPattern = '[a-z0-9][a-z0-9._-]{0,127}|\\*';

/** The names of the table, wildcards put in: what `isKnownFlag` compares with. */
const known: readonly RegExp[] = [
  ...flagTable.map(({ flag }) => {
    const escaped = flag.replace(/[.*]/g, '\\$&').replace('<ringname>', `(?:${ringPattern})`);
    return new RegExp(`^${escaped}$`);
  }),
  new RegExp(`^(?:keyring|asym)\\.(?:${ringPattern})\\.\\*$`),
  /^(?:keyring|asym|asset|user|account|apikey|activity|system)\.\*$/,
];

/** Whether a flag name is one of the table's, wildcards included. Programs warn of others: they grant nothing here. */
export function isKnownFlag(name: string): boolean {
  const lower = name.toLowerCase();
  return known.some((pattern) => pattern.test(lower));
}
