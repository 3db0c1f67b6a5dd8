// Paths and titles of the console pages that the appliance serves beside its endpoints. A part of a path in braces is a
// parameter, as in the paths of endpoints.

interface ConsolePage {
  readonly path: string;
  readonly title: string;
}

export const consolePages = {
  invite: { path: '/console/invite', title: 'Your invitation' },
  reset: { path: '/console/reset', title: 'Choose a new password' },
  forgot: { path: '/console/forgot', title: 'Forgot your password?' },
  oidc: { path: '/console/oidc', title: 'Logging in' },
  setUp: { path: '/console/set-up', title: 'Set up this service' },

  // Pages that need a login.
  home: { path: '/console', title: 'Overview' },
  keyrings: { path: '/console/keyrings', title: 'Keyrings' },
  newKeyring: { path: '/console/new/keyring', title: 'New keyring' },
  keyring: { path: '/console/keyrings/{name}', title: 'Keyring' },
  asym: { path: '/console/asym', title: 'Asymmetric keyrings' },
  managedKeys: { path: '/console/managed-keys', title: 'Managed keys' },
  managedKey: { path: '/console/managed-keys/{name}', title: 'Managed key' },
  kmip: { path: '/console/kmip', title: 'KMIP objects' },
  tang: { path: '/console/tang', title: 'Tang key pairs' },
  apikeys: { path: '/console/apikeys', title: 'API keys' },
  newApikey: { path: '/console/new/apikey', title: 'New API key' },
  apikey: { path: '/console/apikeys/{id}', title: 'API key' },
  users: { path: '/console/users', title: 'Users' },
  newUser: { path: '/console/new/user', title: 'New user' },
  user: { path: '/console/users/{username}', title: 'User' },
  accounts: { path: '/console/accounts', title: 'Accounts' },
  newAccount: { path: '/console/new/account', title: 'New account' },
  account: { path: '/console/accounts/{id}', title: 'Account' },
  assets: { path: '/console/assets', title: 'Assets' },
  asset: { path: '/console/assets/{id}', title: 'Asset' },
  approvals: { path: '/console/approvals', title: 'Approvals' },
  approval: { path: '/console/approvals/{id}', title: 'Approval request' },
  approvalRules: { path: '/console/approval-rules', title: 'Approval rules' },
  newApprovalRule: { path: '/console/new/approval-rule', title: 'New approval rule' },
  approvalRule: { path: '/console/approval-rules/{id}', title: 'Approval rule' },
  brokenGlass: { path: '/console/broken-glass', title: 'Broken glass' },
  activity: { path: '/console/activity', title: 'Activity' },
  activityAbout: { path: '/console/activity/{kind}/{id}', title: 'Activity' },
  activityRecord: { path: '/console/activity/{id}', title: 'Activity record' },
  encrypt: { path: '/console/encrypt', title: 'Encrypt a file' },
  decrypt: { path: '/console/decrypt', title: 'Decrypt a file' },
  me: { path: '/console/me', title: 'Your account' },
  about: { path: '/console/about', title: 'About' },
} as const satisfies Readonly<Record<string, ConsolePage>>;

export type ConsolePageName = keyof typeof consolePages;
