// The kinds of custodian, each of which can hold the master key. Adding a kind here makes the compiler point out every
// place that must handle it.
import { KmsError } from '../errors.ts';

/** Ordered as shown to people. */
export const custodianKinds = [
  // A file outside the data directory.
  'keyfile',
  // A passphrase that somebody remembers.
  'passphrase',
  // Shares, K of N of which are needed.
  'shares',
  // The output of a command.
  'exec',
  // An environment variable.
  'env',
  // A systemd credential.
  'credential',
  // A sheet of paper.
  'recovery-kit',
] as const;

export type CustodianKind = (typeof custodianKinds)[number];

/** Kinds that commands accept by name; a recovery kit has a command and an option of its own. */
export const custodianKindsByName = custodianKinds.filter((kind) => kind !== 'recovery-kit');

/**
 * Recognizes what somebody typed to unseal the appliance: shares and keys have a prefix, other texts are passphrases.
 * Throws `invalid`.
 */
export function typedStep(text: string): { share: string } | { key: string } | { passphrase: string } {
  // Leading white space comes from paper and mails, and is not part of these.
  if (/^\s*kms-share-/i.test(text)) return { share: text };
  if (/^\s*kms-(recovery|master-key)-/i.test(text)) return { key: text };
  if (text.length > 1024) throw new KmsError('invalid', 'that is too long for a passphrase');
  return { passphrase: text };
}
