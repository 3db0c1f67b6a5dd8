// The kinds of custodian: who may hold the master key. A new kind is named here, and the types then ask everybody who
// makes, finds or tells of custodians what it is to them.
import { KmsError } from '../errors.ts';

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

/** What somebody types to unseal the appliance, as it is asked: shares and keys say what they are. Throws `invalid`. */
export function typedStep(text: string): { share: string } | { key: string } | { passphrase: string } {
  // White space comes from paper and mails, and is no part of these.
  if (/^\s*kms-share-/i.test(text)) return { share: text };
  if (/^\s*kms-(recovery|master-key)-/i.test(text)) return { key: text };
  if (text.length > 1024) throw new KmsError('invalid', 'that is too long for a passphrase');
  return { passphrase: text };
}
