// All that the interface decides beyond its endpoints, in the order in which a developer needs it.
import { accessSections } from './guide/access.ts';
import { encryptionSections } from './guide/encryption.ts';
import { recordSections } from './guide/records.ts';
import { requestSections } from './guide/requests.ts';
import type { Section } from './prose.ts';

export const guide: readonly Section[] = [
  ...requestSections,
  ...accessSections,
  ...encryptionSections,
  ...recordSections,
];

export const tags: readonly { readonly name: string; readonly description: string }[] = [
  {
    name: 'KeyRings',
    description: 'KeyRings of the key service: their keys, rotation, configuration, deletion and restoring.',
  },
  {
    name: 'Encryption',
    description: 'Keys, hashes and headers for encryption on the client, and what they stand for.',
  },
  {
    name: 'Assets',
    description: 'Stored records about what was encrypted, which headers carry signed. Encrypt makes and updates them.',
  },
  { name: 'Asym', description: 'The asym service: KeyRings of its own, their keys and rotation.' },
  { name: 'Accounts', description: 'Accounts, which own API keys.' },
  { name: 'API keys', description: 'API keys and their permission flags.' },
  { name: 'Activity', description: 'The record of every request.' },
  { name: 'Users', description: 'People who log in.' },
  { name: 'Login', description: 'Invites, logins, sessions and password resets: most of it without a credential.' },
  { name: 'System', description: 'The appliance itself: health, metrics, backup, seal, and this description.' },
];
