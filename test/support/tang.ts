// Tang clients for tests.
import assert from 'node:assert/strict';
import { createECDH, createHash } from 'node:crypto';

/** A client's point, as sent for multiplication: that of RFC 7515, A.4. */
export const somePoint = {
  alg: 'ECMR',
  crv: 'P-521',
  key_ops: ['deriveKey'],
  kty: 'EC',
  x: 'AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jSfS9tsz4qUxcWceqwQGk',
  y: 'ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh9ubmf63e3kyMj2',
};

/** The private key of `somePoint`. */
const scalar = 'AY5pb7A0UFiB3RELSD64fTLOSV_jazdF7fLYyuTw8lOfRhWg6Y6rUrPAxerEzgdRhajnu0ferB0d53vM9mE15j2C';

/** The x coordinate of the product with the exchange key, as the client can compute it. */
export function expectedX(exchange: { readonly x: string; readonly y: string }): string {
  const client = createECDH('secp521r1');
  client.setPrivateKey(Buffer.from(scalar, 'base64url'));
  const point = Buffer.concat([
    Buffer.of(4),
    Buffer.from(exchange.x, 'base64url'),
    Buffer.from(exchange.y, 'base64url'),
  ]);
  return client.computeSecret(point).toString('base64url');
}

/** The Tang listener as clients see it. */
export type TangFetch = (request: Request) => Response | Promise<Response>;

interface BoundPair {
  readonly thumbprint: string;
  readonly exchange: string;
  /** SHA-1 thumbprints, which older clients use. */
  readonly thumbprintS1: string;
  readonly exchangeS1: string;
  /** The advertised public key for exchanges. */
  readonly key: { readonly x: string; readonly y: string };
  /** The product of somePoint and the key. */
  readonly product: object;
}

/** Pairs with a value bound to each, the newest and advertised one last; and a deleted pair. */
export interface TangSample {
  readonly pairs: readonly BoundPair[];
  readonly deleted: string;
}

export const keptTangPairs = 4;

/** Makes a sample; runs `between` when half of the pairs are made. */
export async function tangSample(
  ask: (method: string, path: string) => Promise<{ status: number; body: { pair: { thumbprint: string } } }>,
  fetch: TangFetch,
  between: () => Promise<void>,
): Promise<TangSample> {
  const pairs: BoundPair[] = [];
  for (let n = 0; n <= keptTangPairs; n++) {
    if (n === 2) await between();
    assert.equal((await ask('POST', '/tang/pairs')).status, 200);
    pairs.push(await boundPair(fetch));
  }
  const [gone] = pairs.splice(1, 1);
  assert.equal((await ask('DELETE', `/tang/pairs/${gone?.thumbprint}`)).status, 200);
  return { pairs, deleted: gone?.exchange ?? '' };
}

type Jwk = Readonly<Record<'crv' | 'kty' | 'x' | 'y', string>> & { readonly key_ops: readonly string[] };

async function keysIn(answer: Response): Promise<readonly Jwk[]> {
  assert.equal(answer.status, 200);
  const { payload } = (await answer.json()) as { readonly payload: string };
  return JSON.parse(Buffer.from(payload, 'base64url').toString()).keys;
}

async function boundPair(fetch: TangFetch): Promise<BoundPair> {
  const keys = await keysIn(await fetch(new Request('http://kms.local/adv')));
  const of = (use: string): Jwk => keys.find(({ key_ops: uses }) => uses.includes(use)) ?? assert.fail(use);
  // RFC 7638 §3.
  const thumbprint = ({ crv, kty, x, y }: Jwk, hash: string): string =>
    createHash(hash).update(JSON.stringify({ crv, kty, x, y })).digest('base64url');
  const [signing, exchanging] = [of('verify'), of('deriveKey')];
  const exchange = thumbprint(exchanging, 'sha256');
  return {
    thumbprint: thumbprint(signing, 'sha256'),
    exchange,
    thumbprintS1: thumbprint(signing, 'sha1'),
    exchangeS1: thumbprint(exchanging, 'sha1'),
    key: { x: exchanging.x, y: exchanging.y },
    product: await (await recovered(fetch, exchange)).json(),
  };
}

function recovered(fetch: TangFetch, exchange: string): Response | Promise<Response> {
  const init = { method: 'POST', body: JSON.stringify(somePoint) };
  return fetch(new Request(`http://kms.local/rec/${exchange}`, init));
}

/**
 * Checks that everything bound to any of the pairs is recovered, with the same result as the client itself computes.
 */
export async function recoversAll(fetch: TangFetch, { pairs, deleted }: TangSample): Promise<void> {
  const newest = pairs.at(-1);
  for (const { thumbprint, exchange, thumbprintS1, exchangeS1, key, product } of pairs) {
    for (const name of [exchange, exchangeS1]) {
      const answer = await recovered(fetch, name);
      assert.deepEqual([answer.status, await answer.json()], [200, product]);
    }
    assert.equal('x' in product && product.x, expectedX(key));
    // The advertisement is signed by the earlier pair too, and offers only the newest.
    for (const name of [thumbprint, thumbprintS1]) {
      const keys = await keysIn(await fetch(new Request(`http://kms.local/adv/${name}`)));
      assert.ok(keys.some(({ x }) => x === newest?.key.x));
    }
  }
  assert.equal((await recovered(fetch, deleted)).status, 404);
}
