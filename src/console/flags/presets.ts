// Presets are common sets of permission flags that fill the flag editor as a starting point.
import { draftOf, type FlagDraft, type RingRow, wildcard } from './draft.ts';

interface Preset {
  readonly name: string;
  /** Operations on the chosen keyrings. */
  readonly ofChosen?: readonly string[];
  readonly flags?: readonly string[];
}

const looks = [
  'keyring.list',
  'keyring.*.read',
  'asym.*.read',
  'key.list',
  'key.*.read',
  'tang.read',
  'user.read',
  'account.read',
  'apikey.read',
  'activity.read',
  'system.metrics',
];

export const presets: readonly Preset[] = [
  { name: 'Encrypt only', ofChosen: ['encrypt'] },
  { name: 'Decrypt only', ofChosen: ['decrypt'] },
  { name: 'Service: encrypt and decrypt on chosen keyrings', ofChosen: ['encrypt', 'decrypt'] },
  {
    name: 'Operator',
    flags: [
      ...looks,
      'keyring.create',
      'keyring.*.rotate',
      'keyring.*.config',
      'asym.create',
      'asym.*.rotate',
      'key.create',
      'key.*.rotate',
      'key.*.config',
      'tang.rotate',
      'system.backup',
      'system.seal',
    ],
  },
  {
    name: 'Vault transit: encrypt, decrypt and data keys, on every managed key',
    flags: ['encrypt', 'decrypt', 'rewrap', 'datakey', 'read'].map((operation) => `key.*.${operation}`),
  },
  { name: 'Auditor', flags: [...looks, 'asset.read', 'asset.search'] },
  {
    name: 'Developer',
    ofChosen: ['read', 'encrypt', 'decrypt'],
    flags: ['keyring.list', 'asset.read', 'asset.search'],
  },
  { name: 'Administrator', flags: [wildcard] },
];

/**
 * Applies a preset. Keyrings already named stay chosen, and flags by name are kept. Presets for chosen keyrings never
 * select all keyrings: that has to be ticked on purpose.
 */
export function presetDraft({ ofChosen, flags = [] }: Preset, before: FlagDraft): FlagDraft {
  const { plain, rings } = draftOf(Object.fromEntries(flags.map((flag) => [flag, true])));
  return { plain, rings: [...(ofChosen ? chosen(before.rings, ofChosen) : []), ...rings], others: before.others };
}

function chosen(before: readonly RingRow[], operations: readonly string[]): RingRow[] {
  const named = before.filter(({ resource, ring }) => resource === 'keyring' && ring !== wildcard);
  const names = new Set(named.map(({ ring }) => ring));
  return (names.size === 0 ? [''] : [...names]).map((ring) => ({ resource: 'keyring', ring, operations }));
}
