// Types of things in the activity log as people call them.
export const typeNames: Readonly<Partial<Record<string, string>>> = {
  account: 'account',
  apikey: 'API key',
  approval: 'request',
  'approval-rule': 'approval rule',
  'asym-keyring': 'asymmetric keyring',
  'broken-glass': 'broken glass',
  'second-factor': 'second factor',
  'tang-pair': 'Tang key pair',
  'managed-key': 'managed key',
  // In old records.
  'transit-ring': 'managed key',
};
