// The commands that work with managed keys (`kms key encrypt …`), and those that bring keys in and out.
import { signingHashes } from '../../model/key-types.ts';
import { argument, atLeast, command, integer, oneOf, optionalArgument, path, text, toggle } from './declaration.ts';
import { keyType, newKey } from './key.ts';
import { output } from './option-sets.ts';

const name = { '<NAME>': argument('managed-key') };
const message = { ...name, '[FILE]': optionalArgument('file') };

export const bound = {
  '--associated-data': text('TEXT', 'what the message is bound to; the same must be given to decrypt'),
  '--context': text('TEXT', 'for a key whose messages have derived keys: what this one is derived by'),
};

export const scheme = {
  '--hash': oneOf('HASH', 'the hash to sign (default: by the type)', signingHashes),
  '--prehashed': toggle('the message is the hash already, and as long as one'),
  '--padding': oneOf('PADDING', 'of RSA: pss (the default) or pkcs1v15', ['pss', 'pkcs1v15']),
  '--encoding': oneOf('ENCODING', 'of ECDSA: der (the default), or raw, as JWS has it', ['der', 'raw']),
};

export const keyUse = {
  encrypt: command(
    'encrypt',
    'encrypt a small message with a managed key; see `kms encrypt` for files',
    ['kms key encrypt unseal message.txt > message.vault'],
    { ...message, ...bound },
  ),
  decrypt: command('decrypt', 'decrypt such a message', ['kms key decrypt unseal message.vault'], {
    ...message,
    ...bound,
  }),
  sign: command(
    'sign',
    'sign a message with a managed key',
    [
      'kms key sign release release.tar > release.sig',
      'openssl dgst -sha256 -binary release.tar | kms key sign release --prehashed --hash sha2-256',
    ],
    { ...message, ...scheme },
  ),
  verify: command(
    'verify',
    'verify the signature or MAC of a message; exit code 1 if it does not fit',
    ['kms key verify release release.tar --signature "$(cat release.sig)"'],
    {
      ...message,
      '--signature': text('TEXT', 'the signature, as `kms key sign` prints it'),
      '--mac': text('TEXT', 'or the MAC, as `kms key mac` prints it'),
      ...scheme,
    },
  ),
  mac: command('mac', 'get the MAC of a message by a managed key', ['kms key mac webhook body.json'], message),
  datakey: command(
    'datakey',
    'get a new data key, in clear and encrypted with a managed key',
    ['kms key datakey unseal --json', 'kms key datakey unseal --wrapped > data.key.vault'],
    {
      ...name,
      '--bits': oneOf('BITS', 'how long: 128, 256 (the default) or 512', ['128', '256', '512']),
      '--wrapped': toggle('only the encrypted one'),
      ...bound,
    },
  ),
};

export const keyTransfer = {
  importKey: command(
    'import',
    'import a key as a new managed key, or as the next version of one',
    [
      'kms key import release --from release.pem --type ed25519',
      'kms key import unseal --from key.bin --type aes256-gcm --allow-plaintext-format vault',
      'kms key import unseal --from next.bin --new-version',
      'kms key import partner --public-key partner.pub --type ecdsa-p256 --use verify',
    ],
    {
      '<NAME>': argument('managed-key'),
      '--from': path('FILE', 'the key: its bytes, or for asymmetric types also DER or PEM'),
      '--public-key': path('FILE', 'in place of --from, the public key of an asymmetric key alone: PEM or DER'),
      '--type': keyType,
      '--new-version': toggle('the next version of a key that is there'),
      ...newKey,
      '--allow-plaintext-format': oneOf(
        'FORMAT',
        'vault: open messages that Vault or OpenBao made with the same key, too',
        ['vault'],
      ),
    },
  ),
  exportKey: command(
    'export',
    'export a managed key that may leave the appliance, wrapped to a public key or in clear',
    [
      'kms key export release --to-public-key backup.pub -o release.wrapped',
      'kms key export release --plaintext -o release.pem',
    ],
    {
      ...name,
      '--version': atLeast(1, integer('N', 'this version (default: the latest)')),
      '--to-public-key': path(
        'FILE',
        'wrap it to this RSA public key (PEM or DER) with RSA-OAEP-SHA256 and AES-KWP, as CKM_RSA_AES_KEY_WRAP has it',
      ),
      '--plaintext': toggle('in clear: PEM of an asymmetric key, else its bytes'),
      ...output,
    },
  ),
};
