// Creates custodians: a secret, the slot that it opens, and the parts that people keep, such as the sheet of a recovery
// kit. The secret never goes to the appliance: the public key is enough to wrap the master key for it, and the proof of
// possession is made where the secret is.
import { resolve } from 'node:path';
import { passphraseCost } from '../crypto/argon2id.ts';
import { toHex } from '../crypto/bytes.ts';
import type { Argon2Cost } from '../crypto/primitives.ts';
import { systemRandom } from '../crypto/random.ts';
import { splitSecret } from '../crypto/shamir.ts';
import { KmsError } from '../errors.ts';
import { secretOf } from '../model/secret-text.ts';
import { derivePassphrase, newPassphraseParams, passphraseSlotParams } from '../platform/threads/passwords.ts';
import { formatKeyFile, formatRecoveryCode, formatShare, secretLength } from '../seal/custodian-secret.ts';
import { type Custodian, makeCustodian, type Slot } from '../seal/slot.ts';
import { readKeyFile, slotParams, writeKeyFile } from './key-file.ts';
import { credentialSource, environmentSource, execSecret, type KeySources, type SecretCommand } from './key-sources.ts';

export type CustodianRequest =
  /** `make`: an existing key file is an error; otherwise it is used. */
  | { readonly kind: 'keyfile'; readonly file: string; readonly make?: boolean }
  | { readonly kind: 'env' | 'credential'; readonly env?: KeySources['env'] | undefined }
  | { readonly kind: 'passphrase'; readonly passphrase: string; readonly cost?: Argon2Cost }
  | { readonly kind: 'shares'; readonly count: number; readonly threshold: number }
  | { readonly kind: 'exec'; readonly command: SecretCommand }
  | { readonly kind: 'recovery-kit' };

export interface NewCustodian {
  readonly custodian: Custodian;
  /** The key file, and whether `keep` will create it. */
  readonly keyFile?: { readonly place: string; readonly made: boolean };
  readonly shares?: readonly string[];
  /** A new value for KMS_MASTER_KEY, if it was not set. */
  readonly masterKey?: string;
  readonly recoveryCode?: string;
  /** Writes files of the custodian's kind. Called before the slot is added to a seal. */
  keep(): Promise<void>;
}

const nothing = async (): Promise<void> => {};

export async function newCustodian(request: CustodianRequest): Promise<NewCustodian> {
  switch (request.kind) {
    case 'keyfile':
      return keyFileCustodian(request);
    case 'env':
    case 'credential':
      return outsideCustodian(request);
    case 'passphrase': {
      const { cost = passphraseCost } = request;
      const passphrase = checkedPassphrase(request.passphrase);
      const params = newPassphraseParams(cost);
      return {
        custodian: custodianOf('passphrase', await derivePassphrase(passphrase, params), passphraseSlotParams(params)),
        keep: nothing,
      };
    }
    case 'shares':
      return sharesCustodian(request);
    case 'exec': {
      const { command, args } = request.command;
      const secret = await execSecret(request.command).catch((error: unknown) => {
        // No seal exists yet, so the error is not `sealed`.
        if (!(error instanceof KmsError) || error.code !== 'sealed') throw error;
        throw new KmsError('refused', error.message, { hint: error.hint, cause: error });
      });
      return { custodian: custodianOf('exec', secret, { command, args }), keep: nothing };
    }
    case 'recovery-kit': {
      const secret = systemRandom(secretLength);
      const recoveryCode = formatRecoveryCode(secret);
      const custodian = custodianOf('recovery-kit', secret, { made: new Date().toISOString() });
      return { custodian, recoveryCode, keep: nothing };
    }
  }
}

/** Wipes the secret. */
function custodianOf(kind: Slot['kind'], secret: Uint8Array, params: Slot['params']): Custodian {
  try {
    return makeCustodian(kind, secret, params);
  } finally {
    secret.fill(0);
  }
}

async function keyFileCustodian(request: Extract<CustodianRequest, { kind: 'keyfile' }>): Promise<NewCustodian> {
  const place = resolve(request.file);
  const known = await readKeyFile(place);
  if (known && request.make) {
    throw new KmsError('refused', `${place}: there is a key file already; it was left as it is`, {
      hint: 'name another one',
    });
  }
  const secret = known ?? systemRandom(secretLength);
  const custodian = makeCustodian('keyfile', secret, slotParams(place));
  const keep = async (): Promise<void> => {
    if (!known) await writeKeyFile(place, secret);
    secret.fill(0);
  };
  return { custodian, keyFile: { place, made: !known }, keep };
}

async function outsideCustodian({ kind, env }: Extract<CustodianRequest, { kind: 'env' | 'credential' }>) {
  const source = kind === 'env' ? environmentSource(env) : credentialSource(env);
  const known = await source.find();
  if (!known && kind === 'credential') {
    throw new KmsError('refused', 'there is no systemd credential kms-master-key here', {
      hint: 'run this with LoadCredentialEncrypted=kms-master-key, or with CREDENTIALS_DIRECTORY set',
    });
  }
  const secret = known ?? systemRandom(secretLength);
  const masterKey = known ? undefined : formatKeyFile(secret).trim();
  return { custodian: custodianOf(kind, secret, {}), ...(masterKey !== undefined && { masterKey }), keep: nothing };
}

function sharesCustodian({ count, threshold }: Extract<CustodianRequest, { kind: 'shares' }>): NewCustodian {
  const secret = systemRandom(secretLength);
  const set = toHex(systemRandom(4));
  const shares = splitSecret(secret, { count, threshold }, systemRandom).map(({ index, bytes }) => {
    const text = formatShare({ set, threshold, index, bytes });
    bytes.fill(0);
    return text;
  });
  return { custodian: custodianOf('shares', secret, { set, threshold, count }), shares, keep: nothing };
}

/** The length limits apply to the NFC form, which is hashed. */
function checkedPassphrase(given: string): string {
  const passphrase = secretOf(given, 'the passphrase');
  const hashed = passphrase.normalize('NFC');
  if ([...hashed].length >= 8 && Buffer.byteLength(hashed) <= 1024) return passphrase;
  throw new KmsError('invalid', 'the passphrase must have at least 8 characters, and at most 1024 bytes', {
    hint: 'four or more words picked at random are good',
  });
}

interface KitFacts {
  readonly applianceId: string;
  /** Id of the custodian. */
  readonly id: string;
  /** A date such as 2026-01-02. */
  readonly day: string;
  readonly code: string;
  /** For each tenant, its number of managed keys, whose keys the appliance holds. */
  readonly managedKeys?: readonly { readonly tenant: string; readonly count: number }[];
}

export function recoveryKitText({ applianceId, id, day, code, managedKeys = [] }: KitFacts): string {
  const there = managedKeys.filter(({ count }) => count > 0).map(({ tenant, count }) => `${tenant} ${count}`);
  return `RECOVERY KIT OF A KEY-MANAGEMENT APPLIANCE

appliance  ${applianceId}
kit        ${id}
made       ${day}

The code:

    ${code}

With this sheet, a backup and the program kms, everything in the appliance can be had back. No server, no
network, no other key is needed. Put this text, or the line with the code alone, into a file, and run:

    kms restore BACKUP --data NEWDIR --key-file FILE
    kms serve --data NEWDIR --key-file FILE

A copy of the data directory opens the same way, with the second line alone. An appliance that runs and is sealed
opens with:

    kms unseal --key-file FILE

Keys of rings with custody "server" (managed keys) are among what it opens, and so is all that they encrypted,
wherever that is; by tenant there were, on that day: ${there.length > 0 ? there.join(', ') : 'none'}.
What rings with custody "client" encrypted needs their private keys, too, which are not in the appliance.

Anybody who has this sheet and a backup or the data can read all that the appliance keeps. Print it, keep it in a safe,
apart from the backups. When it is lost or seen, make another with "kms recovery-kit", and end this one with:

    kms master remove-custodian ${id}
    kms master rotate
`;
}
