// Passkeys on the wire, in the JSON forms of Web Authentication: options for the browser, and its responses.
// `navigator.credentials` takes and returns them once their bytes are decoded and encoded.
import { z } from 'zod';
import { sample } from './example-values.ts';
import { base64urlPattern, count, textList } from './values.ts';

/** Maximum length in characters: no authenticator comes near. */
const longest = 16_384;

const base64url = z
  .string()
  .refine((value) => /^[A-Za-z0-9_-]+$/.test(value) && value.length <= longest, 'must be base64url')
  .meta({ pattern: base64urlPattern, maxLength: longest });

const challenge = z.string().meta({
  pattern: base64urlPattern,
  description: 'base64url; good for 5 minutes, and once',
  examples: [sample.challenge],
});
const timeout = count.meta({ description: 'milliseconds to wait for somebody', examples: [300000] });
const publicKeyType = z.enum(['public-key']).meta({ description: 'always `public-key`' });

const known = z.array(
  z.object({
    id: z.string().meta({ description: 'what the authenticator calls it, base64url', examples: [sample.credentialId] }),
    type: publicKeyType,
    transports: z
      .array(z.string().meta({ examples: ['internal'] }))
      .meta({ description: 'how the authenticator is reached, as the browser said' }),
  }),
);

const host = z.string().meta({ description: 'the host that passkeys are for', examples: ['kms.example.org'] });

export const creationOptions = z
  .object({
    rp: z
      .object({
        id: host,
        name: z.string().meta({ description: 'for people', examples: ['Key management service'] }),
      })
      .meta({ description: 'the service' }),
    user: z
      .object({
        id: z.string().meta({ description: 'id of the User, as base64url', examples: [sample.userHandle] }),
        name: z.string().meta({ description: 'the user name', examples: ['ada'] }),
        displayName: z.string().meta({ description: 'the name to show', examples: ['Ada Lovelace'] }),
      })
      .meta({ description: 'whose it is' }),
    challenge,
    pubKeyCredParams: z
      .array(
        z.object({
          type: publicKeyType,
          alg: z.int().meta({ description: 'number of a COSE algorithm', examples: [-7] }),
        }),
      )
      .meta({ description: 'ES256, EdDSA or RS256' }),
    timeout,
    excludeCredentials: known.meta({ description: 'those that the User has' }),
    authenticatorSelection: z
      .object({
        residentKey: z.enum(['preferred']).meta({ description: 'whether it can tell whose it is by itself' }),
        userVerification: z.enum(['preferred']).meta({ description: 'whether it looks who is there' }),
      })
      .meta({ description: 'what is asked of the authenticator' }),
    attestation: z.enum(['none']).meta({ description: 'nothing is asked of its maker' }),
  })
  .meta({
    id: 'PasskeyCreationOptions',
    description: '`PublicKeyCredentialCreationOptionsJSON` of Web Authentication',
  });

export const requestOptions = z
  .object({
    challenge,
    timeout,
    rpId: host,
    allowCredentials: known.meta({ description: 'one of these; empty where the passkey tells whose it is' }),
    userVerification: z
      .enum(['preferred', 'required'])
      .meta({ description: 'required where there was no password before' }),
  })
  .meta({ id: 'PasskeyRequestOptions', description: '`PublicKeyCredentialRequestOptionsJSON` of Web Authentication' });

const credential = {
  id: base64url.meta({ description: 'what the authenticator calls it, base64url', examples: [sample.credentialId] }),
  rawId: base64url.meta({ description: 'the same', examples: [sample.credentialId] }),
  type: publicKeyType,
};
const clientData = { description: 'what the browser says it asked for, base64url' };

export const newPasskey = z
  .object({
    ...credential,
    response: z
      .object({
        clientDataJSON: base64url.meta({ ...clientData, examples: [sample.newClientData] }),
        attestationObject: base64url.meta({
          description: 'the public key, base64url',
          examples: [sample.attestationObject],
        }),
        transports: textList(10)
          .exactOptional()
          .meta({
            description: 'how the authenticator is reached',
            examples: [['internal']],
          }),
      })
      .meta({ description: 'what the authenticator answered' }),
  })
  .meta({ id: 'NewPasskey', description: '`RegistrationResponseJSON` of Web Authentication' });

export const usedPasskey = z
  .object({
    ...credential,
    response: z
      .object({
        clientDataJSON: base64url.meta({ ...clientData, examples: [sample.usedClientData] }),
        authenticatorData: base64url.meta({
          description: 'what the authenticator says, base64url',
          examples: [sample.authenticatorData],
        }),
        signature: base64url.meta({ description: 'over both, base64url', examples: [sample.passkeySignature] }),
        userHandle: base64url.exactOptional().meta({
          description: 'id of the User, as base64url',
          examples: [sample.userHandle],
        }),
      })
      .meta({ description: 'what the authenticator answered' }),
  })
  .meta({ id: 'UsedPasskey', description: '`AuthenticationResponseJSON` of Web Authentication' });
