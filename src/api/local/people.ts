// Local endpoints for people's access to a tenant: an identity provider, links to set up and to choose a password, and
// the reset of second factors.
import { z } from 'zod';
import { isJsonObject } from '../../model/json.ts';
import { endpoint, ofTenant } from '../endpoint.ts';
import type { Sent } from '../endpoints.ts';
import { only, requiredText, secretText } from '../values.ts';

/** Flags that each value of a claim gives; validated when they are stored. */
const claimFlags = z.custom<Readonly<Record<string, readonly string[]>>>(isJsonObject, 'expected an object');
const oidcProvider = z.object({
  issuer: z.string(),
  clientId: z.string(),
  name: z.string(),
  scope: z.string(),
  userClaim: z.string(),
  createUsers: z.boolean(),
  trustEmail: z.boolean().meta({ description: 'addresses count without a claim `email_verified`' }),
  flagsClaim: z.string().exactOptional(),
  claimFlags,
  hasCa: z.boolean().meta({ description: 'authorities of its own vouch for it' }),
  changedAt: z.string(),
});
export type OidcProviderAnswer = Sent<z.output<typeof oidcProvider>>;

export const peopleEndpoints = [
  endpoint('getOidc', {
    summary: "Read the settings of the tenant's identity provider, but for the secret",
    ...ofTenant,
    answer: oidcProvider,
  }),
  endpoint('setOidc', {
    summary: 'Let people log in with an identity provider',
    ...ofTenant,
    body: only({
      issuer: requiredText,
      clientId: requiredText,
      clientSecret: secretText,
      name: requiredText.exactOptional(),
      scope: requiredText.exactOptional(),
      userClaim: requiredText.exactOptional(),
      createUsers: z.boolean().exactOptional(),
      trustEmail: z.boolean().exactOptional(),
      flagsClaim: requiredText.exactOptional(),
      claimFlags: claimFlags.exactOptional(),
      allowRoot: z.boolean().exactOptional(),
      ca: requiredText.exactOptional(),
    }),
    answer: oidcProvider,
  }),
  endpoint('removeOidc', {
    summary: 'Let nobody log in with the identity provider any more',
    ...ofTenant,
    answer: oidcProvider,
  }),
  endpoint('unlinkOidc', {
    summary: 'Forget who a user is at the identity provider',
    ...ofTenant,
    body: z.object({ username: requiredText }),
    answer: z.object({ username: z.string() }),
  }),

  endpoint('makeSetUpLink', {
    changes: false,
    summary: 'Make the link by which the first user of a fresh appliance sets it up',
    ...ofTenant,
    answer: z.object({ url: z.string(), expiresAt: z.string() }),
  }),
  endpoint('makeResetLink', {
    summary: 'Make a link by which a user chooses a new password',
    ...ofTenant,
    body: z.object({ username: requiredText, email: z.boolean().exactOptional() }),
    answer: z.object({ username: z.string(), resetUrl: z.string(), expiresAt: z.string() }),
  }),
  endpoint('resetSecondFactor', {
    summary: 'Take all second factors and recovery codes of a user away, and end the sessions',
    ...ofTenant,
    body: z.object({ username: requiredText, email: z.boolean().exactOptional() }),
    answer: z.object({ username: z.string(), removed: z.int() }),
  }),
] as const;
