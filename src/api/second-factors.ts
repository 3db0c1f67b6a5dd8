// Second factors on the wire: which ones a User has beside the password, and how they are added and removed.
import { z } from 'zod';
import { emptyBody, endpoint, missing, tooManyTries } from './endpoint.ts';
import { sample } from './example-values.ts';
import { creationOptions, newPasskey } from './passkeys.ts';
import { count, eitherOf, idOf, pastTime, requiredText, secretText, text, timestamp } from './values.ts';

const tag = 'Second factors';

const factorId = idOf('fact').meta({ description: 'id of the second factor', examples: [sample.factorId] });
const nameMeta = { description: 'what the User calls it', maxLength: 128, examples: ['my phone'] };
const name = text
  .refine((value) => [...value].length <= 128, 'must have at most 128 characters')
  .exactOptional()
  .meta({ ...nameMeta, pattern: '^[^\\x00]*$' });

const secondFactor = z
  .object({
    id: factorId,
    kind: z.enum(['totp', 'passkey']).meta({ description: '`totp`: an app that shows codes' }),
    name: z.string().meta({ ...nameMeta, description: 'what the User calls it; may be empty' }),
    createdAt: timestamp.meta({ description: 'when it was added: RFC 3339, UTC, milliseconds' }),
    lastUsedAt: pastTime.nullable().meta({
      description: 'when it was last used: milliseconds since 1970, UTC; null before the first time',
      examples: [sample.epochTime],
    }),
  })
  .meta({ id: 'SecondFactor', description: 'what a User has beside the password' });

const recoveryCode = z.string().meta({ examples: [sample.recoveryCode] });
const newCodes = z
  .array(recoveryCode)
  .meta({ description: 'each stands in for a second factor, once; told this once' });
const added = z.object({
  secondFactor,
  recoveryCodes: newCodes.exactOptional().meta({
    description: 'with the first second factor: each stands in for one, once; told this once',
  }),
});

export const ownSecondFactors = z
  .object({
    secondFactors: z.array(secondFactor).meta({ description: '20 at most' }),
    recoveryCodes: count.meta({ description: 'how many recovery codes are left', examples: [10] }),
    needed: z.boolean().meta({
      description: 'the permission flags of the User are such that one is needed',
      examples: [false],
    }),
  })
  .meta({ id: 'OwnSecondFactors' });

/** Proof that the session is still used by its User. */
const proof = {
  currentPassword: secretText.exactOptional().meta({
    description: 'the password; it or a code is needed',
    examples: [sample.password],
  }),
  code: secretText.exactOptional().meta({
    description: 'in its place: a code of an app, or a recovery code',
    examples: [sample.totpCode],
  }),
};

const needsProof = eitherOf('currentPassword', 'code');

const adding = { kind: 'credential', action: 'user.add-second-factor' } as const;

export const secondFactorEndpoints = [
  endpoint('listSecondFactors', {
    tag,
    summary: 'List the own second factors, oldest first',
    access: { kind: 'credential', action: 'user.list-second-factors' },
    answer: ownSecondFactors,
  }),
  endpoint('beginTotp', {
    tag,
    summary: 'Get the secret for an app that shows codes',
    access: { kind: 'credential', action: 'user.begin-second-factor', backoff: true },
    body: z.object({ ...proof, name }).meta(needsProof),
    answer: z.object({
      id: factorId,
      secret: z.string().meta({
        description: 'base32, to be typed into the app',
        pattern: '^[A-Z2-7]+$',
        examples: [sample.totpSecret],
      }),
      uri: z
        .string()
        .meta({ format: 'uri', description: 'the same for the app as a QR code', examples: [sample.totpUri] }),
    }),
    errors: tooManyTries,
  }),
  endpoint('finishTotp', {
    tag,
    summary: 'Add the app, by a code that it shows',
    access: adding,
    body: z.object({
      id: requiredText.meta({ description: 'id of the second factor', examples: [sample.factorId] }),
      code: secretText.meta({ description: 'six digits', examples: [sample.totpCode] }),
    }),
    answer: added,
    errors: missing('no app waits for its code under this id, or no longer'),
  }),
  endpoint('beginPasskey', {
    tag,
    summary: 'Get what the browser needs to make a passkey',
    access: { kind: 'credential', action: 'user.begin-second-factor', backoff: true },
    body: z.object(proof).meta(needsProof),
    answer: creationOptions,
    errors: tooManyTries,
  }),
  endpoint('finishPasskey', {
    tag,
    summary: 'Add the passkey that the browser made',
    access: adding,
    body: z.object({ credential: newPasskey, name }),
    answer: added,
  }),
  endpoint('removeSecondFactor', {
    tag,
    summary: 'Remove an own second factor',
    access: { kind: 'credential', action: 'user.remove-second-factor', backoff: true },
    body: z
      .object({
        ...proof,
        id: requiredText.meta({ description: 'id of the second factor', examples: [sample.factorId] }),
      })
      .meta(needsProof),
    answer: emptyBody,
    errors: { ...missing('no such second factor of this User'), ...tooManyTries },
  }),
  endpoint('renewRecoveryCodes', {
    tag,
    summary: 'Make new recovery codes; the old ones end',
    access: { kind: 'credential', action: 'user.new-recovery-codes', backoff: true },
    body: z.object(proof).meta(needsProof),
    answer: z.object({ recoveryCodes: newCodes }),
    errors: tooManyTries,
  }),
] as const;
