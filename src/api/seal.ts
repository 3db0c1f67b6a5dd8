// Sealing and unsealing on the wire: what everybody may know of it, and the steps by which the master key comes back.
import { z } from 'zod';
import { endpoint } from './endpoint.ts';
import { errorBody } from './error.ts';
import { secretText } from './values.ts';

/** All that an appliance tells of its seal without a credential; nothing of the shares that were given. */
export const sealStatus = z
  .object({
    sealed: z.boolean().meta({ description: 'the master key is out of reach', examples: [true] }),
    kinds: z
      .array(z.string())
      .meta({ description: 'what kinds of custodians hold the master key', examples: [['shares']] }),
    threshold: z
      .int()
      .exactOptional()
      .meta({ description: 'how many shares it takes, where there are shares', examples: [3] }),
    progress: z
      .int()
      .exactOptional()
      .meta({ description: 'how many of them were given', examples: [1] }),
  })
  .meta({ id: 'SealStatus', description: 'whether the appliance is sealed' });
export type SealStatus = Readonly<Omit<z.output<typeof sealStatus>, 'kinds'>> & { readonly kinds: readonly string[] };

/** One of these. */
export const unsealBody = z
  .object({
    share: secretText.exactOptional().meta({ description: 'one of several shares' }),
    passphrase: secretText
      .exactOptional()
      .meta({ description: 'a passphrase', examples: ['five words that nobody guesses'] }),
    key: secretText.exactOptional().meta({ description: 'the content of a key file, or a recovery kit' }),
    retry: z
      .literal(true)
      .exactOptional()
      .meta({ description: 'look again where the key comes from by itself; on the local socket alone' }),
    reset: z
      .literal(true)
      .exactOptional()
      .meta({ description: 'forget the shares that were given; on the local socket alone' }),
  })
  .refine((body) => Object.keys(body).length === 1, 'expected one of share, passphrase, key, retry and reset');
export type UnsealStep = Readonly<z.output<typeof unsealBody>>;

const tag = 'System';
const refusals = {
  403: { description: 'it is for the local socket', schema: errorBody },
  429: { description: 'too many failed tries; `Retry-After` says how long to wait', schema: errorBody },
};

/** They work while the appliance is sealed, all but the one that seals it. They belong to no tenant. */
export const sealEndpoints = {
  status: endpoint('sealStatus', {
    tag,
    summary: 'Tell whether the appliance is sealed, and how far unsealing is',
    access: { kind: 'public' },
    answer: sealStatus,
  }),
  unseal: endpoint('unseal', {
    tag,
    summary: 'Unseal the appliance, or enter one share towards it',
    access: { kind: 'public' },
    answer: sealStatus,
    errors: refusals,
  }),
  seal: endpoint('seal', {
    changes: false,
    tag,
    summary: 'Seal the appliance: its keys are forgotten, and it answers nothing until it is unsealed',
    access: { kind: 'flag', action: 'system.seal', operator: 'act' },
    answer: sealStatus,
  }),
} as const;
