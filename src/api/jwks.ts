// Public keys of issuers of signed tokens, as JSON Web Key Sets have them (RFC 7517), and the document in which an
// issuer says where they are (OpenID Connect Discovery 1.0, section 3).
import { z } from 'zod';

export const mostJwks = 100;
const base64url = z
  .string()
  .regex(/^[A-Za-z0-9_-]+$/)
  .max(8192);

/** One key, with its public members alone. */
export const publicJwk = z.object({
  kty: z.string(),
  kid: z.string().max(512).optional(),
  alg: z.string().optional(),
  use: z.string().optional(),
  n: base64url.optional(),
  e: base64url.optional(),
  crv: z.string().optional(),
  x: base64url.optional(),
  y: base64url.optional(),
});

export const jwkSet = z.object({ keys: z.array(z.looseObject({ kty: z.string() })).max(mostJwks) });

export const discoveryDocument = z.object({ issuer: z.string(), jwks_uri: z.string() });
