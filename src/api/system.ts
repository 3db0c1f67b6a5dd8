// The appliance as a whole: liveness and readiness, the API description, its seal, its metrics and backups. Sealing,
// metrics and backups need a permission flag; the other endpoints need no credential.
import { z } from 'zod';
import { backupEndpoints } from './backups.ts';
import { endpoint, errorBody, tooManyTries } from './endpoint.ts';
import { overviewEndpoints } from './overview.ts';
import { notReady, readyAnswer } from './readiness.ts';
import { secretText } from './values.ts';

const tag = 'System';

const healthAnswer = z.object({ status: z.enum(['ok']).meta({ description: 'the process lives' }) });

export const publicEndpoints = {
  health: endpoint('getHealth', {
    tag,
    summary: 'Tell that the process lives',
    access: { kind: 'public' },
    answer: healthAnswer,
  }),
  readiness: endpoint('getReadiness', {
    tag,
    summary: 'Tell whether the appliance can serve',
    access: { kind: 'public' },
    answer: readyAnswer,
    errors: { 503: { description: 'it cannot serve, and why', schema: notReady } },
  }),
  description: endpoint('getOpenApi', {
    tag,
    summary: 'This description, as OpenAPI 3.1',
    access: { kind: 'public' },
    answer: z.record(z.string(), z.unknown()).meta({ description: 'an OpenAPI 3.1 document' }),
    errors: { 503: { description: 'the appliance is sealed', schema: errorBody } },
  }),
  docs: endpoint('getDocs', {
    tag,
    summary: 'This description, as a page to read',
    access: { kind: 'public' },
    answer: z.string(),
    text: 'text/html; charset=utf-8',
  }),
} as const;

/** Everything that an appliance reveals about its seal without a credential; nothing about the shares given. */
export const sealStatus = z
  .object({
    sealed: z.boolean().meta({ description: 'the master key is out of reach', examples: [true] }),
    kinds: z
      .array(z.string())
      .meta({ description: 'what kinds of custodians hold the master key', examples: [['shares']] }),
    threshold: z
      .int()
      .min(1)
      .exactOptional()
      .meta({ description: 'how many shares it takes, where there are shares', examples: [3] }),
    progress: z
      .int()
      .min(0)
      .exactOptional()
      .meta({ description: 'how many of them were given', examples: [1] }),
  })
  .meta({ id: 'SealStatus', description: 'whether the appliance is sealed' });
export type SealStatus = Readonly<Omit<z.output<typeof sealStatus>, 'kinds'>> & { readonly kinds: readonly string[] };

/** Exactly one of these. */
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
  .refine((body) => Object.keys(body).length === 1, 'expected one of share, passphrase, key, retry and reset')
  .meta({ minProperties: 1, maxProperties: 1 });
export type UnsealStep = Readonly<z.output<typeof unsealBody>>;

const refusals = {
  403: { description: 'it is for the local socket', schema: errorBody },
  ...tooManyTries,
};

/** Work while the appliance is sealed, except the endpoint that seals it. They belong to no tenant. */
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

export const systemEndpoints = [
  ...overviewEndpoints,
  ...backupEndpoints,
  endpoint('getMetrics', {
    tag,
    summary: "The tenant's and the process's numbers, in Prometheus' text format",
    access: { kind: 'flag', action: 'system.metrics', operator: 'look' },
    answer: z.string(),
    text: 'text/plain; version=0.0.4; charset=utf-8',
  }),
] as const;
