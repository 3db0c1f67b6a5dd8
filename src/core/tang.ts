// Tang: key pairs that let machines unlock their disks while they can reach the appliance. A machine binds a disk to
// the advertised pair without the appliance's help; to recover, it sends a blinded point, which the appliance
// multiplies by the pair's secret: the disk key itself never gets here. Clients have no credential; each recovery is
// recorded with their address.
import type { Answer } from '../api/endpoints.ts';
import type { TangPair as PairAnswer } from '../api/tang.ts';
import {
  advertisement,
  exchanged,
  newTangPair,
  openTangPair,
  sealTangPair,
  tangPoints,
  tangThumbprints,
} from '../crypto/tang.ts';
import { KmsError } from '../errors.ts';
import type { ResourceRef } from '../model/activity-details.ts';
import { isJsonObject } from '../model/json.ts';
import { timestamp } from '../model/timestamp.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';
import type { Store, Tables } from '../store/port.ts';
import type { TangPair } from '../store/tables/tang.ts';
import { activityRecord } from './activity.ts';
import type { Context, World } from './context.ts';

/** Includes those kept beside the advertised one. */
const mostPairs = 100;

/** Recorded caller of requests without a credential. */
const networkCaller = 'network';

/** Context of a request from a Tang client. */
export type TangContext = Pick<Context, 'tx' | 'tenant' | 'world' | 'address'>;

export function listTangPairs({ tx }: Pick<Context, 'tx'>): Answer<'listTangPairs'> {
  return { pairs: tx.tang.all().map(pairAnswer) };
}

export function rotateTangPair(ctx: Context): Answer<'rotateTangPair'> {
  const kept = ctx.tx.tang.all();
  if (kept.length >= mostPairs) {
    throw new KmsError('conflict', `there are ${mostPairs} Tang key pairs already: delete those that nothing uses`);
  }
  const [before] = kept;
  const pair = makePair(ctx);
  ctx.note({ object: pairThing(pair), ...(before && { objects: [pairThing(before)] }) });
  return { pair: pairAnswer(pair) };
}

export function deleteTangPair(
  ctx: Context,
  { thumbprint }: { readonly thumbprint: string },
): Answer<'deleteTangPair'> {
  const { tx } = ctx;
  const pair = tx.tang.bySigning(thumbprint) ?? tx.tang.byExchange(thumbprint);
  if (!pair) throw new KmsError('not-found', 'there is no such Tang key pair');
  if (pair.rotatedAt === undefined) {
    throw new KmsError('conflict', 'this Tang key pair is advertised: rotate first');
  }
  tx.tang.erase(pair.thumbprint);
  ctx.note({ object: pairThing(pair) });
  return { pair: pairAnswer(pair) };
}

function makePair({ tx, tenant, world }: Omit<TangContext, 'address'>): TangPair {
  if (tenant.custody === 'client') {
    throw new KmsError('conflict', 'this tenant keeps to keys that are held by clients (custody client)');
  }
  const secret = newTangPair(world.random);
  const { signing, exchange } = tangPoints(secret);
  const { s256: thumbprint, s1: thumbprintS1 } = tangThumbprints(signing);
  const { s256, s1 } = tangThumbprints(exchange);
  const { epoch } = tenant.keys;
  const sealed = sealTangPair(tenant.keys.key('tang', epoch), thumbprint, secret, world.random);
  secret.fill(0);
  const createdAt = world.now();
  const pair = { thumbprint, thumbprintS1, exchange: s256, exchangeS1: s1, epoch, sealed, createdAt };
  tx.tang.insert(pair);
  return { ...pair, rotatedAt: undefined, recoveries: 0, recoveredAt: undefined };
}

/**
 * The advertisement, a JWS; with `signer` it is also signed by that pair, so that a client that trusts an older pair
 * trusts the newest. Undefined if there is no pair yet. Throws `not-found` for an unknown signer.
 */
export function advertised(
  { tang }: Pick<Tables, 'tang'>,
  keys: TenantKeys,
  signer: string | undefined,
): string | undefined {
  const newest = tang.advertised();
  if (!newest) return undefined;
  const other = signer === undefined ? newest : tang.bySigning(signer);
  if (!other) throw new KmsError('not-found', 'there is no such Tang key pair');
  const secrets = [newest, ...(other.thumbprint === newest.thumbprint ? [] : [other])].map((pair) => open(keys, pair));
  try {
    const [secret = new Uint8Array()] = secrets;
    return advertisement(tangPoints(secret), secrets);
  } finally {
    for (const secret of secrets) secret.fill(0);
  }
}

/** Makes the first pair, on the first client's request. */
export function makeFirstPair(ctx: TangContext): void {
  const { tx, world, address } = ctx;
  // Another client asked at the same time.
  if (tx.tang.advertised()) return;
  const deed = { object: pairThing(makePair(ctx)) };
  tx.record(activityRecord(world, { keyid: networkCaller, action: 'tang.rotate', address, deed }));
}

/**
 * Multiplies a client's point, a JWK, by the secret of the pair whose exchange key has this thumbprint. Throws
 * `invalid` for a malformed point, `forbidden` for a key of another purpose, `not-found`.
 */
export function recover(
  { tx, tenant, world, address }: TangContext,
  { thumbprint, jwk }: { readonly thumbprint: string; readonly jwk: unknown },
): string {
  const { x, y } = pointOf(jwk);
  const pair = tx.tang.byExchange(thumbprint);
  if (!pair) {
    if (tx.tang.bySigning(thumbprint)) throw new KmsError('forbidden', 'this key signs, and exchanges nothing');
    throw new KmsError('not-found', 'there is no such Tang key pair');
  }
  const secret = open(tenant.keys, pair);
  const product = exchanged(secret, x, y);
  secret.fill(0);
  if (product === undefined) throw new KmsError('invalid', 'expected the coordinates of a point of P-521');
  tx.tang.noteRecovery(pair.thumbprint, world.now());
  const deed = { object: pairThing(pair) };
  tx.record(activityRecord(world, { keyid: networkCaller, action: 'tang.recover', address, deed }));
  return product;
}

function pointOf(jwk: unknown): { readonly x: string; readonly y: string } {
  if (!isJsonObject(jwk)) throw new KmsError('invalid', 'expected a JWK');
  const { kty, crv, alg = 'ECMR', key_ops: operations, x, y } = jwk;
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('deriveKey'))) {
    throw new KmsError('forbidden', 'key_ops: expected deriveKey among them');
  }
  if (kty !== 'EC' || crv !== 'P-521' || alg !== 'ECMR' || typeof x !== 'string' || typeof y !== 'string') {
    throw new KmsError('invalid', 'expected a JWK with kty EC, crv P-521, alg ECMR, x and y');
  }
  return { x, y };
}

/** Reseals all pairs under the tenant's newest epoch, so that older ones can go. */
export async function resealTangPairs(store: Store, keys: TenantKeys, random: World['random']): Promise<void> {
  const { epoch } = keys;
  await store.transaction(({ tang }) => {
    for (const pair of tang.all()) {
      if (pair.epoch === epoch) continue;
      const secret = open(keys, pair);
      tang.reseal(pair.thumbprint, epoch, sealTangPair(keys.key('tang', epoch), pair.thumbprint, secret, random));
      secret.fill(0);
    }
  });
}

function open(keys: TenantKeys, { epoch, thumbprint, sealed }: TangPair): Uint8Array {
  const secret = openTangPair(keys.key('tang', epoch), thumbprint, sealed);
  if (!secret) throw new KmsError('corrupt', 'a stored Tang key pair was altered');
  return secret;
}

function pairThing({ thumbprint }: TangPair): ResourceRef {
  return { type: 'tang-pair', id: thumbprint };
}

function pairAnswer({ thumbprint, exchange, createdAt, rotatedAt, recoveries, recoveredAt }: TangPair): PairAnswer {
  return {
    thumbprint,
    exchange,
    advertised: rotatedAt === undefined,
    createdAt: timestamp(createdAt),
    ...(rotatedAt !== undefined && { rotatedAt: timestamp(rotatedAt) }),
    recoveries,
    ...(recoveredAt !== undefined && { recoveredAt: timestamp(recoveredAt) }),
  };
}
