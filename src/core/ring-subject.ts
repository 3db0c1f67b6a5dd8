// The ring that a request is about, for authorization: found from a name, an id, a hash or a header. A hash or header
// is opened once, here, and handed to the operation with the ring.
import { decodeHeader, inspectHeader } from '../crypto/header.ts';
import { openKeyHash } from '../crypto/key-hash.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import type { Tables } from '../store/port.ts';
import type { RingService } from '../store/tables/rings.ts';
import type { RingSubject } from './authorization.ts';
import type { SealedInput, Tenant } from './context.ts';
import { lookUpManagedKey } from './managed-key-names.ts';
import { nameFromPath, secretNameAt } from './secret-paths.ts';

/** Where a request names its ring; values as received, unchecked. An id finds deleted rings too. */
export type RingSource =
  | { readonly name: unknown }
  /** A managed key's name, id or alias. */
  | { readonly key: unknown }
  /** The path of a secret. */
  | { readonly secret: unknown }
  | { readonly id: unknown }
  | { readonly hash: unknown }
  | { readonly header: unknown }
  | { readonly sealed: { readonly hash?: unknown; readonly header?: unknown } };

interface SubjectContext {
  readonly tx: Pick<Tables, 'rings' | 'managedKeys'>;
  readonly tenant: Pick<Tenant, 'keys'>;
}

/** The subject, and the opened hash or header that led to it. */
interface RingAsked {
  readonly subject: RingSubject;
  readonly sealed?: SealedInput;
}

/** `action` tells the service: `asym.` or another. */
export function ringSubject(ctx: SubjectContext, action: string, source: RingSource): RingAsked {
  if ('name' in source) {
    return { subject: isText(source.name) ? { kind: 'named', name: source.name.toLowerCase() } : none };
  }
  if ('key' in source) return { subject: isText(source.key) ? keySubject(ctx, source.key) : none };
  if ('secret' in source) return { subject: isText(source.secret) ? secretSubject(ctx, source.secret) : none };
  if ('id' in source) {
    if (!isText(source.id)) return { subject: none };
    return action.startsWith('key.') ? hiddenManagedKey(ctx, source.id) : hidden(ctx, serviceOf(action), source.id);
  }
  const { hash, header }: { hash?: unknown; header?: unknown } = 'sealed' in source ? source.sealed : source;
  const sealed = readSealed(ctx.tenant.keys, { hash, header });
  const ringId = isOneRing(sealed, hash, header) ? sealed.reference?.ringId : undefined;
  return ringId === undefined ? { subject: none, sealed } : hidden(ctx, 'ks', ringId, sealed);
}

const none: RingSubject = { kind: 'none' };

/** If there is a header, its own hash counts. */
export function readSealed(keys: TenantKeys, { hash, header }: { hash?: unknown; header?: unknown }): SealedInput {
  const decoded = isText(header) ? decodeHeader(keys, header) : undefined;
  if (decoded) return { header: decoded, reference: decoded.reference };
  return { header: undefined, reference: isText(hash) ? openKeyHash(keys, hash) : undefined };
}

/** Whether header and hash, as far as given, can be read and agree. */
function isOneRing(sealed: SealedInput, hash: unknown, header: unknown): boolean {
  if (header === undefined) return true;
  if (!sealed.header || !isText(header)) return false;
  return hash === undefined || hash === inspectHeader(header)?.hash;
}

function hidden(ctx: SubjectContext, service: RingService, id: string, sealed?: SealedInput): RingAsked {
  const ring = ctx.tx.rings.byId(service, id);
  const subject: RingSubject = { kind: 'hidden', name: ring?.name };
  return sealed ? { subject, sealed: { ...sealed, ring } } : { subject };
}

/** The flag is looked up by the key's name, whatever it was asked for by. */
function keySubject({ tx }: SubjectContext, ref: string): RingSubject {
  const asked = ref.toLowerCase();
  const name = lookUpManagedKey(tx, ref)?.name ?? asked;
  return { kind: 'named', name, asked };
}

/** A refusal repeats what the path alone tells. */
function secretSubject({ tx }: SubjectContext, path: string): RingSubject {
  return { kind: 'named', name: secretNameAt(tx, path), asked: nameFromPath(path) };
}

function hiddenManagedKey({ tx }: SubjectContext, id: string): RingAsked {
  return { subject: { kind: 'hidden', name: tx.managedKeys.byId(id)?.name } };
}

function serviceOf(action: string): RingService {
  return action.startsWith('asym.') ? 'asym' : 'ks';
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
