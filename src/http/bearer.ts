// The credential in a request's Authorization header, as text. Whether it is worth anything is the core's business.
const longest = 512;

/** The bearer token; undefined when there is none or it cannot be one. */
export function bearerToken(header: string | undefined): string | undefined {
  if (header === undefined || header.length > longest) return undefined;
  if (!header.startsWith('Bearer ') && header.slice(0, 7).toLowerCase() !== 'bearer ') return undefined;
  const token = header.slice(7).trim();
  return token === '' ? undefined : token;
}
