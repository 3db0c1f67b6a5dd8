// How an API key is shown to people, and what they are told of flags that grant nothing.
import type { SafeApiKey } from '../../../api/apikey.ts';
import { isKnownFlag } from '../../../api/flag-table.ts';
import type { Cli } from '../../cli.ts';
import { say } from '../../io.ts';
import type { Pair } from '../../output.ts';
import type { Column } from '../../table.ts';

type Shown = Pick<SafeApiKey, 'keyid' | 'active' | 'references' | 'flags' | 'props'> & Partial<SafeApiKey>;

export function apiKeyPairs(key: Shown): readonly Pair[] {
  return [
    ['id', key.keyid],
    ['active', key.active ? 'yes' : 'no'],
    ['account', key.references.accountId],
    ['flags', granted(key)],
    ['props', JSON.stringify(key.props)],
    ['created', key.createdAt],
    ['updated', key.updatedAt],
  ];
}

export const apiKeyColumns: readonly Column<SafeApiKey>[] = [
  { title: 'id', value: (key) => key.keyid, whole: true },
  { title: 'active', value: (key) => (key.active ? 'yes' : 'no') },
  { title: 'account', value: (key) => key.references.accountId, whole: true },
  { title: 'flags', value: granted },
  { title: 'created', value: (key) => key.createdAt, whole: true, spare: true },
];

function granted({ flags }: Pick<SafeApiKey, 'flags'>): string {
  return Object.keys(flags)
    .filter((name) => flags[name] === true)
    .join(' ');
}

/** The flags object of the repeated --flag, with a warning of names that the appliance knows nothing of. */
export async function flagsOf(cli: Cli): Promise<Record<string, boolean> | undefined> {
  const names = cli.list('--flag');
  for (const name of names) {
    if (!isKnownFlag(name))
      await say(cli.io, `warning: the flag "${name}" grants nothing in this appliance; is it a mistake?`);
  }
  return names.length > 0 ? Object.fromEntries(names.map((name) => [name, true])) : undefined;
}
