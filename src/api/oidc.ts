// Logins by OpenID Connect on the wire: start returns the identity provider's address, finish takes the parameters that
// the browser comes back with.
import { z } from 'zod';
import { endpoint, errorBody, missing, tooManyTries } from './endpoint.ts';
import { sample } from './example-values.ts';
import { loginAnswer } from './logins.ts';
import { secretText, text } from './values.ts';

const binding = secretText.meta({
  description: 'ties the login to the program that began it: to be kept by that, and sent when it finishes',
  examples: [sample.oidcBinding],
});

const finishBody = z.object({
  code: secretText.meta({
    description: '`code` of the address to which the provider led back',
    examples: ['SplxlOBeZQQYbYS6WxSbIA'],
  }),
  state: secretText.meta({ description: '`state` of that address', examples: [sample.oidcState] }),
  binding,
  iss: text.exactOptional().meta({
    description: '`iss` of that address, where it has one (RFC 9207)',
    examples: ['https://login.example.org'],
  }),
});

const tag = 'Login';
const none = missing('no identity provider is set up');

export const oidcEndpoints = [
  endpoint('describeOidc', {
    tag,
    summary: 'Tell whether people can log in with an identity provider',
    access: { kind: 'public' },
    answer: z.object({
      enabled: z.boolean().meta({ description: 'they can', examples: [true] }),
      name: z
        .string()
        .nullable()
        .meta({
          description: 'what the provider is called; null where there is none',
          examples: ['login.example.org'],
        }),
    }),
  }),
  endpoint('startOidc', {
    changes: false,
    tag,
    summary: 'Begin a login with the identity provider',
    access: { kind: 'public', backoff: true },
    answer: z.object({
      url: z.string().meta({
        format: 'uri',
        description: "the provider's page, for the person's browser",
        examples: [`https://login.example.org/authorize?client_id=kms&state=${sample.oidcState}`],
      }),
      binding,
    }),
    errors: { ...none, ...tooManyTries },
  }),
  endpoint('finishOidc', {
    tag,
    summary: 'Log in with what the identity provider led back with',
    access: { kind: 'public', backoff: true, recorded: 'session.create' },
    body: finishBody,
    answer: loginAnswer,
    errors: {
      403: { description: 'the provider knows the person, and no User may log in so', schema: errorBody },
      ...none,
      ...tooManyTries,
    },
  }),
] as const;
