// Refusals of work with managed keys, which have the words of Vault on the wire, since its clients expect them, in the
// words of the command line.
import { KmsError } from '../errors.ts';

interface Words {
  readonly message: string;
  readonly hint?: string;
}

const showUses = 'see its uses with `kms key show`';
const printed = (command: string): string => `give the whole text that \`kms key ${command}\` printed`;
const kinds: Readonly<Record<string, readonly [what: string, command: string]>> = {
  ciphertext: ['an encrypted message', 'encrypt'],
  signature: ['a signature', 'sign'],
  HMAC: ['a MAC', 'mac'],
};
const none = (kind: string): Words => {
  const [what, command] = kinds[kind] ?? [kind, kind];
  return { message: `expected ${what}, which begins with vault:v`, hint: printed(command) };
};
const incomplete = (kind: string): Words => {
  const [what, command] = kinds[kind] ?? [kind, kind];
  return { message: `expected ${what}, got one that is cut off or altered`, hint: printed(command) };
};
const tooNew = (what: string): Words => ({
  message: `the ${what} names a version that the key does not have`,
  hint: 'was it made with another key, or before a backup was restored?',
});
const tooOld = (what: string): Words => ({
  message: `the key refuses the version that made the ${what}: it is older than the oldest that it accepts`,
  hint: 'lower that with `kms key config NAME --min-decrypt-version N`',
});
const notOpened: Words = {
  message: 'the message does not open',
  hint: 'it was altered, or encrypted with another key, another --associated-data or another --context',
};
/** Vault calls some types otherwise. */
const typeNames: Readonly<Record<string, string>> = { 'aes128-gcm96': 'aes128-gcm', 'aes256-gcm96': 'aes256-gcm' };
const cannot = (type: string, work: string): Words => ({
  message: `a key of the type ${typeNames[type] ?? type} cannot ${work}`,
  hint: showUses,
});
const verbs: Readonly<Record<string, string>> = {
  encryption: 'encrypt',
  decryption: 'decrypt',
  signing: 'sign',
  verification: 'verify signatures',
  'HMAC creation': 'make MACs',
  'HMAC verification': 'verify MACs',
};

const table: readonly (readonly [problem: RegExp, words: (...groups: string[]) => Words])[] = [
  [
    /^missing 'context'/,
    () => ({
      message: 'the key needs a context, from which it derives a key for each message',
      hint: 'give --context TEXT; decrypting takes the same as encrypting',
    }),
  ],
  [
    /^context: the messages of this key/,
    () => ({ message: 'this key takes no context', hint: 'bind the message with --associated-data instead' }),
  ],
  [/: message authentication failed$|^failed to RSA decrypt/, () => notOpened],
  [/^invalid ciphertext: version is too new/, () => tooNew('message')],
  [/^invalid signature: version is too new/, () => tooNew('signature')],
  [/^invalid HMAC: version is too new/, () => tooNew('MAC')],
  [/^invalid (ciphertext|signature|HMAC)(?: to verify)?: no prefix$/, (kind = '') => none(kind)],
  [/^invalid (ciphertext|signature|HMAC)\b/, (kind = '') => incomplete(kind)],
  [/^invalid base64 (signature) value$/, (kind = '') => incomplete(kind)],
  [/^unable to decode verification (HMAC)\b/, (kind = '') => incomplete(kind)],
  [/\billegal base64 data at input byte \d+$/, () => ({ message: 'expected base64' })],
  [/^keyVersion: this version is disallowed/, () => tooOld('signature')],
  [/^ciphertext or signature version is disallowed/, () => tooOld('message or signature')],
  [/^cannot verify HMAC: version is too old/, () => tooOld('MAC')],
  [/^message (\S+) not supported for key type (\S+)$/, (work = '', type = '') => cannot(type, verbs[work] ?? work)],
  [/^key type (\S+) does not support (.+)$/, (type = '', work = '') => cannot(type, verbs[work] ?? work)],
  [
    /^private key material is not exportable$/,
    () => ({
      message: 'the key may not leave the appliance',
      hint: 'only a key that was made or imported with --exportable may',
    }),
  ],
  [
    /^version for export is below minimum/,
    () => ({ message: 'the key refuses this version: it is older than the oldest that it accepts' }),
  ],
  [
    /^(the key is pending.deletion)(.*)$/,
    (said = '', rest = '') => ({
      message: said.replace('-', ' ') + rest,
      hint: '`kms key restore NAME` takes the deletion back, until its time is over',
    }),
  ],
  [
    /^error deleting policy (\S+): deletion is not allowed/,
    (name = '') => ({
      message: `${name} is protected from deletion`,
      hint: `lift that with \`kms key config ${name} --deletion-allowed true\``,
    }),
  ],
  [
    /^cannot set min (de|en)cryption version of (\d+), (?:latest key version is (\d+)|(.+))$/,
    (half = '', wanted = '', latest, expected) => ({
      message:
        `--min-${half}crypt-version: ` +
        (latest === undefined ? `${expected}, got ${wanted}` : `the latest version is ${latest}, got ${wanted}`),
    }),
  ],
];

/** The error; for a refusal with the words of Vault, one that says the same to people. */
export function inOwnWords(error: unknown): unknown {
  if (!(error instanceof KmsError)) return error;
  const words = ownWords(error.message);
  return words ? new KmsError(error.code, words.message, { hint: words.hint, cause: error }) : error;
}

/** Words for a problem that has those of Vault; undefined for any other. */
export function ownWords(problem: string): Words | undefined {
  for (const [form, words] of table) {
    const found = form.exec(problem);
    if (found) return words(...found.slice(1));
  }
  return undefined;
}
