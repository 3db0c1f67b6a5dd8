// The kinds of custodian: who may hold the master key. A new kind is named here, and the types then ask everybody who
// makes, finds or tells of custodians what it is to them.

/** In the order in which people read them. */
export const custodianKinds = [
  // A file, beside the data directory.
  'keyfile',
  // What somebody knows.
  'passphrase',
  // K of N people.
  'shares',
  // What a command prints.
  'exec',
  // An environment variable.
  'env',
  // What systemd hands over.
  'credential',
  // A sheet of paper.
  'recovery-kit',
] as const;

export type CustodianKind = (typeof custodianKinds)[number];

/** Those that commands take by their name; a recovery kit is made by a command and an option of its own. */
export const custodianKindsByName = custodianKinds.filter((kind) => kind !== 'recovery-kit');
