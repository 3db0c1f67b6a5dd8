// Responses in the format of Vault and OpenBao: data or a token in an envelope, or error messages.
import type { World } from '../../core/context.ts';
import { KmsError } from '../../errors.ts';

/** A response before it is encoded. Without any of the optional parts it has no body. */
export interface VaultResponse {
  readonly status: number;
  /** In the envelope, like `auth`. */
  readonly data?: object | undefined;
  readonly auth?: object;
  readonly errors?: readonly string[];
  /** In the envelope. */
  readonly warnings?: readonly string[];
  /** Sent beside `data`, too. */
  readonly beside?: object;
  /** Sent without an envelope. */
  readonly bare?: object;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export const done: VaultResponse = { status: 204 };
export const nothing: VaultResponse = { status: 404, errors: [] };
export const permissionDenied: VaultResponse = { status: 403, errors: ['permission denied'] };
export const isSealed: VaultResponse = { status: 503, errors: ['Vault is sealed'] };

/** Statuses whose responses have no body. */
export function hasNoBody(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

export function found(data: object): VaultResponse {
  return { status: 200, data };
}

export function problem(status: number, message: string): VaultResponse {
  return { status, errors: [message] };
}

export function noSuchRoute(path: readonly string[]): VaultResponse {
  return problem(404, `no handler for route "${path.join('/').slice(0, 200)}". route entry not found.`);
}

/** The error for an invalid request. */
export function invalid(message: string): KmsError {
  return new KmsError('invalid', message);
}

/**
 * Ids in the form of UUIDs: a random prefix per process and a counter at the end, which is cheaper than a random id
 * each.
 */
export function envelopeIds(random: World['random']): () => string {
  const start = random(10)
    .toHex()
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  let count = 0;
  return () => start + (++count).toString(16).padStart(12, '0');
}

/** The response body; undefined if there is none. */
export function bodyOf(
  { data, auth, errors, warnings, beside, bare }: VaultResponse,
  nextId: () => string,
): object | undefined {
  if (errors) return { errors };
  if (!data && !auth) return bare;
  const request_id = nextId();
  const lease = { lease_id: '', renewable: false, lease_duration: 0 };
  const told = { data: data ?? null, wrap_info: null, warnings: warnings ?? null, auth: auth ?? null };
  return { ...beside, request_id, ...lease, ...told };
}
