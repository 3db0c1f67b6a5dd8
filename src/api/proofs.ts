// Proofs of API keys on the wire, and the logins of programs that have one instead of a stored secret.
import { z } from 'zod';
import { emptyBody, endpoint, missing, tooManyTries } from './endpoint.ts';
import { sample } from './example-values.ts';
import {
  accessTokenPattern,
  callerId,
  count,
  epochTime,
  freeForm,
  idOf,
  pastTime,
  pathText,
  requiredText,
  secretText,
  text,
  timestamp,
} from './values.ts';

const tag = 'Proofs';

const kinds = ['secret', 'aws', 'certificate', 'jwt'] as const;
const keyid = idOf('apik').meta({ description: 'id of the API key', examples: [sample.apikeyId] });
const name = text
  .refine(
    (value) => [...value].length <= 128 && !/\p{C}/u.test(value),
    'has at most 128 characters, all of them visible',
  )
  .meta({ description: 'what people call the proof, in at most 128 characters', examples: ['CI of payroll'] });

const trust = {
  issuer: requiredText.meta({
    description:
      'for `jwt`: who signs the tokens, exactly as they name it: https (http on this machine alone), or `spiffe://` and a trust domain',
    examples: ['https://token.actions.githubusercontent.com'],
  }),
  audience: z.union([requiredText, z.array(requiredText)]).meta({
    description: 'for `jwt`: the audience that tokens must be issued for, or several, of which one is enough',
    examples: ['kms'],
  }),
  subject: requiredText.meta({
    description: 'for `jwt`: the claim `sub`; `*` stands for anything but a slash, `**` for anything',
    examples: ['repo:acme/payroll:ref:refs/heads/main'],
  }),
  claims: freeForm.meta({
    description:
      'for `jwt`: claims by name or JSON pointer, each with its value or the values of which it must have one; `*` as in `subject`',
    examples: [{ repository_id: '123456789' }],
  }),
  jwks: freeForm.meta({
    description:
      "for `jwt`: the issuer's public keys, pinned (RFC 7517, or a SPIFFE bundle); absent: those that it publishes, by discovery",
    examples: [
      { keys: [{ kty: 'OKP', crv: 'Ed25519', kid: 'one', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }] },
    ],
  }),
  jwksUrl: requiredText.meta({
    description: 'for `jwt`: the https address of the keys, if the issuer has no discovery document',
    examples: ['https://cluster.example.org/openid/v1/jwks'],
  }),
  ca: requiredText.meta({
    description:
      "for `jwt`: PEM of the authorities that the issuer's address is trusted by, instead of the public ones; for `certificate`: PEM of the authority that signs the certificates, with `san`",
    examples: ['-----BEGIN CERTIFICATE-----\nMIIB…\n-----END CERTIFICATE-----\n'],
  }),
  once: z.boolean().meta({
    description: 'for `jwt`: each token opens one session; it then needs the claim `jti`',
    examples: [false],
  }),
  longest: z
    .int()
    .min(60)
    .max(86_400)
    .meta({
      description: 'for `jwt`: the longest lifetime of a token in seconds; a day if absent',
      examples: [3600],
    }),
};

const certificatePem = '-----BEGIN CERTIFICATE-----\nMIIB…\n-----END CERTIFICATE-----\n';
const san = z.string().meta({
  description:
    'for `certificate`: the name that certificates have among their alternative names: `dns:NAME`, `email:ADDRESS`, `uri:URI` or a SPIFFE ID, in whose path `*` stands for anything but a slash',
  examples: ['spiffe://prod.example.org/payroll'],
});

/** The ways to make a proof by client certificates: one certificate, an authority and a name, or a new certificate. */
const certificates = {
  certificate: requiredText
    .meta({
      description:
        'for `certificate`: PEM of the client certificate, whose key is pinned; those that signed it may follow',
      examples: [certificatePem],
    })
    .exactOptional(),
  san: requiredText.meta(san.meta() ?? {}).exactOptional(),
  issue: z
    .boolean()
    .meta({ description: 'for `certificate`: the appliance issues one, with a new key', examples: [true] })
    .exactOptional(),
  days: z
    .int()
    .min(1)
    .max(825)
    .meta({ description: 'for `certificate` with `issue`: how long it is valid; 90 if absent', examples: [90] })
    .exactOptional(),
};

const given = Object.fromEntries(Object.entries(trust).map(([field, schema]) => [field, schema.exactOptional()])) as {
  readonly [Field in keyof typeof trust]: z.ZodExactOptional<(typeof trust)[Field]>;
};

/** The same in answers, which have every text. */
const shown = {
  ...(Object.fromEntries(
    (['issuer', 'subject', 'jwksUrl', 'ca'] as const).map((field) => [field, shownText(trust[field]).exactOptional()]),
  ) as Record<'issuer' | 'subject' | 'jwksUrl' | 'ca', z.ZodExactOptional<z.ZodString>>),
  audience: z
    .array(z.string())
    .exactOptional()
    .meta({
      description: 'for `jwt`: audiences of which a token must name one',
      examples: [['kms']],
    }),
  claims: given.claims,
  jwks: given.jwks,
  once: given.once,
  longest: given.longest,
};

function shownText(schema: z.ZodType): z.ZodString {
  const { description = '', examples } = schema.meta() ?? {};
  return z.string().meta({ description, examples: [examples].flat().map(String) });
}

export const proof = z
  .object({
    id: z.string().meta({ description: 'id of the proof; `secret` for the secret', examples: [sample.proofId] }),
    kind: z.enum(kinds).meta({
      description: 'how the key is proved: a secret, an AWS access key, a client certificate, a signed token',
      examples: ['jwt'],
    }),
    name: z.string().meta({ description: 'what people call it; may be empty', examples: ['CI of payroll'] }),
    active: z.boolean().meta({ description: '`false`: it proves nothing', examples: [true] }),
    createdAt: timestamp,
    createdBy: callerId.nullable().meta({
      description: 'id of the API key or User that made it, `local` for the administrator at the machine',
      examples: [sample.userId],
    }),
    lastUsedAt: pastTime.nullable().meta({
      description: 'the last request or login with it, to a minute, in epoch milliseconds; `null` before the first',
      examples: [sample.epochTime],
    }),
    accessKeyId: z
      .string()
      .exactOptional()
      .meta({ description: 'of an AWS access key', examples: [sample.accessKeyId] }),
    awsAccount: z
      .string()
      .exactOptional()
      .meta({
        description: 'the account of the tenant, as ARNs have it, for an AWS access key',
        examples: ['123456789012'],
      }),
    fingerprint: z
      .string()
      .exactOptional()
      .meta({
        description:
          'for `certificate`: SHA-256 of the public key (SubjectPublicKeyInfo) of the certificate, or of its authority, in hex',
        examples: ['8a1f…'],
      }),
    san: san.exactOptional(),
    authority: z
      .string()
      .exactOptional()
      .meta({
        description: 'for `certificate` with `san`: the name of the authority, which proves nothing without its key',
        examples: ['O=Acme, CN=Programs of Acme'],
      }),
    issued: z
      .boolean()
      .exactOptional()
      .meta({ description: 'for `certificate`: the appliance issued it', examples: [true] }),
    notAfter: timestamp
      .meta({
        description:
          'for `certificate`: the end of the certificate that was issued, or of that of the authority, and of the proof; of a pinned one only its own end, since a later certificate with the same key proves the API key, too',
        examples: ['2026-04-01T00:00:00.000Z'],
      })
      .exactOptional(),
    ...shown,
  })
  .meta({ id: 'Proof', description: 'a way by which an API key is proved' });

export type Proof = z.output<typeof proof>;

const newProof = proof.extend({
  key: z
    .string()
    .exactOptional()
    .meta({ description: 'the new secret; told once', examples: [sample.apikey] }),
  secretAccessKey: z
    .string()
    .exactOptional()
    .meta({ description: 'the secret of the access key; told once', examples: [sample.secretAccessKey] }),
  certificate: z
    .string()
    .exactOptional()
    .meta({ description: 'PEM of the certificate that was issued', examples: [certificatePem] }),
  privateKey: z
    .string()
    .exactOptional()
    .meta({
      description: 'PEM (PKCS #8) of its private key; told once',
      examples: ['-----BEGIN PRIVATE KEY-----\nMIGH…\n-----END PRIVATE KEY-----\n'],
    }),
  caCertificate: z
    .string()
    .exactOptional()
    .meta({ description: 'PEM of the authority that issued it', examples: [certificatePem] }),
  otherTenant: z
    .literal(true)
    .exactOptional()
    .meta({
      description:
        'another tenant has an older proof of the same certificates: over KMIP, which names no tenant, they belong there; elsewhere the host names the tenant',
      examples: [true],
    }),
  renewed: z
    .literal(true)
    .exactOptional()
    .meta({
      description: 'the API key had this proof already, which has a later end now; its name and state are as before',
      examples: [true],
    }),
});

const session = {
  id: idOf('sess').meta({ description: 'id of the session', examples: [sample.sessionId] }),
  keyid: keyid.meta({ description: 'id of the API key that the token acts as', examples: [sample.apikeyId] }),
  proof: z.string().meta({ description: 'id of the proof', examples: [sample.proofId] }),
  subject: z.string().meta({
    description: 'the program, in the words of its proof',
    examples: ['repo:acme/payroll:ref:refs/heads/main'],
  }),
  createdAt: pastTime.meta({ description: 'when it logged in, in epoch milliseconds', examples: [sample.epochTime] }),
  expiresAt: epochTime.meta({ description: 'the end of its lease, in epoch milliseconds', examples: [1767229200000] }),
  expiresIn: count.meta({ description: 'the seconds left until then', examples: [3600] }),
  renewableUntil: epochTime.meta({
    description: 'the time beyond which no renewal extends, in epoch milliseconds',
    examples: [1767268800000],
  }),
  certificate: z
    .object({
      name: z.string().meta({ description: 'name of the proof, or its id', examples: ['payroll'] }),
      commonName: z.string().meta({ description: 'common name; proves nothing', examples: ['payroll'] }),
      serialNumber: z.string().meta({ description: 'in decimal', examples: ['126043983907018387'] }),
      subjectKeyId: z.string().meta({ description: 'in hex; may be empty', examples: ['8a1f'] }),
      authorityKeyId: z.string().meta({ description: 'in hex; may be empty', examples: ['8a1f'] }),
    })
    .exactOptional()
    .meta({
      description: 'of a login by a client certificate: the token is good only in connections with one of the same key',
    }),
};
const workloadSession = z.object(session);

const role = requiredText.meta({
  description: 'the API key to act as: its id, its name if no other has it, or the id of a proof',
  examples: [sample.apikeyId],
});
const token = secretText.meta({ description: 'the signed token (JWT)', examples: [sample.signedToken] });
const seconds = z
  .int()
  .min(1)
  .exactOptional()
  .meta({ description: 'the lease in seconds, from now on; as long as may be if absent', examples: [3600] });
const unknown = missing('no such API key, or it has no such proof');
const params = z.object({ keyid: pathText, proof: pathText });

export const proofEndpoints = [
  endpoint('listProofs', {
    tag,
    summary: 'List the proofs of an API key, oldest first',
    access: { kind: 'flag', action: 'apikey.read' },
    params: z.object({ keyid: pathText }),
    answer: z.object({ proofs: z.array(proof).meta({ description: 'at most 20' }) }),
    errors: unknown,
  }),
  endpoint('addProof', {
    tag,
    summary: 'Add a proof to an API key; the answer alone holds its secret, if it has one',
    access: { kind: 'flag', action: 'apikey.update' },
    params: z.object({ keyid: pathText }),
    body: z.object({
      kind: z.enum(kinds).meta({
        description:
          '`secret` for a key that has none, `aws` for an AWS access key, `certificate` for client certificates, `jwt` for signed tokens',
        examples: ['jwt'],
      }),
      name: name.exactOptional(),
      active: z
        .boolean()
        .exactOptional()
        .meta({
          description: '`false`: it proves nothing until it is switched on; not for `secret`',
          examples: [true],
        }),
      ...given,
      ...certificates,
    }),
    answer: newProof,
    errors: unknown,
  }),
  endpoint('updateProof', {
    tag,
    summary: 'Switch a proof of an API key off or on',
    access: { kind: 'flag', action: 'apikey.update' },
    params,
    body: z.object({
      active: z
        .boolean()
        .meta({ description: '`false`: it proves nothing, from the next request on', examples: [false] }),
    }),
    answer: proof,
    errors: unknown,
  }),
  endpoint('removeProof', {
    tag,
    summary: 'Remove a proof of an API key; its sessions end',
    access: { kind: 'flag', action: 'apikey.update' },
    params,
    answer: emptyBody,
    errors: unknown,
  }),
  endpoint('testProof', {
    changes: false,
    tag,
    summary: 'Tell whether a signed token would log in as an API key, check by check; no session is opened',
    access: { kind: 'flag', action: 'apikey.read' },
    params: z.object({ keyid: pathText }),
    body: z.object({ token }),
    answer: z.object({
      proofs: z
        .array(
          z.object({
            proof: z.string().meta({ description: 'id of the proof', examples: [sample.proofId] }),
            accepted: z.boolean().meta({ description: 'the token would log in', examples: [false] }),
            steps: z
              .array(
                z.object({
                  check: z.string().meta({ description: 'what is checked', examples: ['audience'] }),
                  ok: z.boolean().meta({ description: 'it is right', examples: [false] }),
                  reason: z
                    .string()
                    .exactOptional()
                    .meta({ description: 'why not', examples: ['it was issued for another audience'] }),
                }),
              )
              .meta({ description: 'the checks in order, up to the first that fails' }),
          }),
        )
        .meta({ description: 'by proof, oldest first' }),
    }),
    errors: unknown,
  }),
  endpoint('workloadLogin', {
    tag,
    summary: 'Log in as an API key with a signed token or a client certificate that one of its proofs trusts',
    access: { kind: 'public', recorded: 'session.create' },
    body: z.object({
      token: token.exactOptional(),
      certificate: z
        .boolean()
        .exactOptional()
        .meta({ description: "the certificate of the connection, in a token's place", examples: [true] }),
      role: role.exactOptional(),
      seconds,
    }),
    answer: z.object({
      accessToken: z.string().meta({
        pattern: accessTokenPattern,
        description: 'stands in place of an API key in `Authorization: Bearer`, with the flags of the API key',
        examples: [sample.workloadToken],
      }),
      ...session,
    }),
    errors: tooManyTries,
  }),
  endpoint('getWorkloadSession', {
    tag,
    summary: "Read the caller's own workload session",
    access: { kind: 'credential', action: 'session.read' },
    answer: workloadSession,
  }),
  endpoint('renewWorkloadSession', {
    tag,
    summary: "Extend the lease of the caller's workload token",
    access: { kind: 'credential', action: 'session.refresh' },
    body: z.object({ seconds }),
    answer: workloadSession,
  }),
  endpoint('endWorkloadSession', {
    tag,
    summary: "End the caller's workload session",
    access: { kind: 'credential', action: 'session.end' },
    answer: emptyBody,
  }),
] as const;
