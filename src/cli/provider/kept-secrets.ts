// Secrets that the appliance tells once, when a resource is made: in the state only if the configuration says so,
// encrypted to a keyring or in clear.
import { encryptBytes } from '../../client/file-streams.ts';
import { KmsError } from '../../errors.ts';
import type { Secret, Workplace } from '../as-code/kind.ts';
import type { Attributes } from './attributes.ts';
import type { ObjectValue } from './values.ts';

/** These are no fields of the API. */
const field = '';

export const secretAttributes: Attributes = {
  secrets_to: {
    about: 'the KeyRing to which secrets are encrypted that the appliance tells once; see `wrapped_secrets`',
    field,
    type: 'string',
    origin: 'optional',
  },
  wrapped_secrets: {
    about: 'with `secrets_to`: each secret as a file of `kms encrypt`, in base64, which `kms decrypt` opens',
    field,
    type: ['map', 'string'],
    origin: 'computed',
  },
  keep_secrets: {
    about: '`true`: secrets are kept in the state, in clear, as `secrets`; whoever can read the state then has them',
    field,
    type: 'bool',
    origin: 'optional',
  },
  secrets: {
    about: 'with `keep_secrets`: the secrets that came with making the object',
    field,
    type: ['map', 'string'],
    origin: 'computed',
    isSensitive: true,
  },
};

/** Whether the configuration says what becomes of secrets. Unknown values are taken for an answer. */
export function keepsSecrets({ keep_secrets, secrets_to }: ObjectValue): boolean {
  return (
    keep_secrets === true ||
    (keep_secrets !== false && keep_secrets !== null && keep_secrets !== undefined) ||
    !!secrets_to
  );
}

/** Where the secrets go that a call may bring. */
export type SecretPlace = Pick<Workplace, 'deliver' | 'withdraw'>;

interface SecretKeeper extends SecretPlace {
  /** Whether it has none. */
  isEmpty(): boolean;
  /** Values of `secrets` and `wrapped_secrets`, after those of `prior`. */
  values(prior: ObjectValue): ObjectValue;
}

/** For calls that bring none. */
export const noSecrets: SecretPlace = {
  async deliver() {
    throw noKeeper();
  },
  async withdraw() {},
};

/** Keeps secrets as the configuration says. `client` asks for the ring to encrypt to. */
export function secretKeeper(
  { keep_secrets, secrets_to }: ObjectValue,
  client: () => Promise<Workplace['client']>,
): SecretKeeper {
  const [clear, wrapped] = [new Map<string, string>(), new Map<string, string>()];
  return {
    async deliver({ label, text }: Secret) {
      if (typeof secrets_to === 'string') wrapped.set(label, await wrappedTo(secrets_to, text, await client()));
      // Ready to be used in an expression.
      if (keep_secrets === true) clear.set(label, text.trimEnd());
      if (!wrapped.has(label) && !clear.has(label)) throw noKeeper();
    },
    async withdraw(label) {
      for (const kept of [clear, wrapped]) {
        if (label === undefined) kept.clear();
        else kept.delete(label);
      }
    },
    isEmpty: () => clear.size + wrapped.size === 0,
    values: ({ secrets, wrapped_secrets }) => ({
      secrets: merged(secrets, clear),
      wrapped_secrets: merged(wrapped_secrets, wrapped),
    }),
  };
}

/** Null if there are none. */
function merged(prior: ObjectValue[string] | undefined, more: ReadonlyMap<string, string>): ObjectValue[string] {
  const all = { ...Object(prior), ...Object.fromEntries(more) };
  return Object.keys(all).length > 0 ? all : null;
}

async function wrappedTo(ring: string, text: string, client: Workplace['client']): Promise<string> {
  // The appliance made the secret: a false public key would tell it nothing new.
  const { bytes } = await encryptBytes(Buffer.from(text), { client, ring, publicKey: ({ publicKey }) => publicKey });
  return Buffer.from(bytes).toString('base64');
}

export function noKeeper(): KmsError {
  return new KmsError('invalid', 'the appliance tells a secret once, and nothing says where it is kept', {
    hint: 'set secrets_to to a keyring, or keep_secrets = true if the state is encrypted; or make it without a secret',
  });
}
