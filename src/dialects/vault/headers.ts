// Headers of Vault's clients: the token, the tenant, and options that change the response.
import { bearerToken, longestCredential } from '../../http/admission.ts';
import { type ApiRequest, headerOf } from '../../http/request.ts';

/** The token; undefined if there is none, or it is too long to be one. */
export function tokenOf(request: ApiRequest): string | undefined {
  const token = headerOf(request, 'x-vault-token');
  if (!token) return bearerToken(headerOf(request, 'authorization'));
  return token.length > longestCredential ? undefined : token;
}

/** The namespace, which names the tenant, without the slashes around it; empty if there is none. */
export function namespaceOf(request: ApiRequest): string {
  const header = headerOf(request, 'x-vault-namespace') ?? '';
  let start = 0;
  let end = header.length;
  while (header[start] === '/') start++;
  while (end > start && header[end - 1] === '/') end--;
  return header.slice(start, end).toLowerCase();
}

/**
 * Headers that ask for a less revealing response or for a check that is not done here, each with the values that turn
 * it off and the message if it is on.
 */
const refusedHeaders: readonly (readonly [name: string, no: RegExp, what: string])[] = [
  ['x-vault-wrap-ttl', /^(?:0[smh]?)?$/, 'response wrapping is not supported: the answer would not be wrapped'],
  ['x-vault-wrap-format', /^$/, 'response wrapping is not supported: the answer would not be wrapped'],
  ['x-vault-mfa', /^$/, 'MFA methods are not supported: none would be asked'],
  ['x-vault-policy-override', /^(?:0|f|F|false|FALSE|False)?$/, 'policies are not supported: none would be overridden'],
];

/** Why a header is refused instead of ignored; undefined if none is. */
export function refusedHeader(request: ApiRequest): string | undefined {
  for (const [name, no, what] of refusedHeaders) {
    const value = headerOf(request, name);
    if (value !== undefined && !no.test(value)) return what;
  }
  return undefined;
}
