// The headers of clients of Vault that say who asks, whom, and for what kind of answer.
import { bearerToken, longestCredential } from '../../http/admission.ts';
import { type ApiRequest, headerOf } from '../../http/request.ts';

/** Undefined, too, where it cannot be one. */
export function tokenOf(request: ApiRequest): string | undefined {
  const token = headerOf(request, 'x-vault-token');
  if (!token) return bearerToken(headerOf(request, 'authorization'));
  return token.length > longestCredential ? undefined : token;
}

/** The name of the tenant that is asked, without the slashes around it; empty for none. */
export function namespaceOf(request: ApiRequest): string {
  const header = headerOf(request, 'x-vault-namespace') ?? '';
  let start = 0;
  let end = header.length;
  while (header[start] === '/') start++;
  while (end > start && header[end - 1] === '/') end--;
  return header.slice(start, end).toLowerCase();
}

/** Headers that ask for an answer that hides more, or for a check that is not made here, each with what says no. */
const refusedHeaders: readonly (readonly [name: string, no: RegExp, what: string])[] = [
  ['x-vault-wrap-ttl', /^(?:0[smh]?)?$/, 'response wrapping is not supported: the answer would not be wrapped'],
  ['x-vault-wrap-format', /^$/, 'response wrapping is not supported: the answer would not be wrapped'],
  ['x-vault-mfa', /^$/, 'MFA methods are not supported: none would be asked'],
  ['x-vault-policy-override', /^(?:0|f|F|false|FALSE|False)?$/, 'policies are not supported: none would be overridden'],
];

/** Why a header is refused that would otherwise be ignored; undefined where there is none. */
export function refusedHeader(request: ApiRequest): string | undefined {
  for (const [name, no, what] of refusedHeaders) {
    const value = headerOf(request, name);
    if (value !== undefined && !no.test(value)) return what;
  }
  return undefined;
}
