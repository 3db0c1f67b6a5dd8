// The kinds of objects in configuration files, in the order in which they are made; they are removed in the reverse
// order.
import type { KindName } from '../../api/configuration.ts';
import type { Kind } from './kind.ts';
import { accountKind } from './kinds/account.ts';
import { apiKeyKind } from './kinds/apikey.ts';
import { keyringKind } from './kinds/keyring.ts';
import { managedKeyKind } from './kinds/managed-key.ts';
import { ruleKind } from './kinds/rule.ts';
import { limitsKind } from './kinds/tenant-limits.ts';
import { userKind } from './kinds/user.ts';

export const kinds: Readonly<Record<KindName, Kind>> = {
  'tenant-limits': limitsKind,
  account: accountKind,
  keyring: keyringKind,
  'managed-key': managedKeyKind,
  user: userKind,
  apikey: apiKeyKind,
  rule: ruleKind,
};
