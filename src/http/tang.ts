// The appliance as clients of Tang see it: /adv, what to bind to, and /rec, which recovers. The protocol knows neither
// credential nor tenant: the addresses that may ask stand in for the one and the host for the other, as elsewhere. What
// is answered to whom: docs/guide-tang.md.
import { advertised, makeFirstPair, recover, type TangContext } from '../core/tang.ts';
import { KmsError } from '../errors.ts';
import {
  type AddressSet,
  addressBytes,
  addressSet,
  canonicalBlock,
  groupsOf,
  privateBlocks,
} from '../model/addresses.ts';
import { sealedError } from './admission.ts';
import type { Appliance, OpenState, State } from './appliance.ts';
import { bodySource, publicBodyLimit } from './body.ts';
import type { FairQueue } from './fair-queue.ts';
import type { AppContext, RequestEnv } from './request.ts';
import type { Reply } from './request-log.ts';
import { type Outcome, refused, respond, type Served, unknownPath } from './respond.ts';
import type { ServedPath } from './route.ts';
import { type TenantHandle, tenantOf } from './tenants.ts';

/** Makes a handler that is logged and counted of what serves a path. */
type Log = (served: Pick<ServedPath, 'path' | 'serve' | 'counted'>) => (c: AppContext) => Promise<Reply>;

/** Who may ask: those of the blocks, or where none are given, what is never routed on the Internet. */
export function tangAddresses(blocks: readonly string[] = privateBlocks): AddressSet {
  const wrong = blocks.find((block) => canonicalBlock(block) === undefined);
  if (wrong === undefined) return addressSet(blocks.flatMap((block) => canonicalBlock(block) ?? []));
  throw new KmsError('usage', `--tang-allow: expected an address or a block of them, got "${wrong}"`, {
    hint: 'such as 192.0.2.0/24, 2001:db8::/32 or 10.1.2.3',
  });
}

export function tangSurface({ world }: Appliance, queue: FairQueue, log: Log) {
  const limits = new TangLimits(world.elapsed);

  /** Bodies are read before it is anybody's turn, so that a slow one keeps nobody waiting. */
  function served<B>(
    action: string,
    read: (c: AppContext) => Promise<B>,
    answer: (
      at: { readonly open: OpenState; readonly handle: TenantHandle; readonly c: AppContext },
      body: B,
    ) => Promise<Outcome>,
  ): ServedPath['serve'] {
    return async (c: AppContext, open: State): Promise<Served> => {
      let tenant: string | undefined;
      const told = (outcome: Outcome): Served => ({ outcome, action, ...(tenant !== undefined && { tenant }) });
      try {
        if (open.sealed) throw sealedError;
        const handle = tenantOf(open, c);
        tenant = handle.tenant.id;
        needAddress(c);
        const body = await read(c);
        const turn = queue.enter(tenant, 'tang');
        if (turn) await turn;
        try {
          return told(await answer({ open, handle, c }, body));
        } finally {
          queue.leave();
        }
      } catch (error) {
        return told(refused(error));
      }
    };
  }

  /** It may ask, and did not do so too often. */
  function needAddress({ env }: AppContext): void {
    const address = env?.remoteAddress;
    if (address === undefined || !env?.tang?.has(address)) {
      throw new KmsError('forbidden', 'this address may not ask (--tang-allow)');
    }
    const wait = limits.wait(address);
    if (wait > 0) throw new KmsError('rate-limited', 'too many requests from this address; wait', { retryAfter: wait });
  }

  function contextOf({ tenant }: TenantHandle, c: AppContext): Omit<TangContext, 'tx'> {
    return { tenant, world, address: c.env?.remoteAddress };
  }

  const advertise = log({
    path: '/adv/{thp}',
    counted: 'tang.advertise',
    serve: served(
      'tang.advertise',
      async () => {},
      async ({ open, handle, c }) => {
        const look = (): Promise<string | undefined> =>
          handle.store.transaction((tables) => advertised(tables, handle.tenant.keys, c.req.param().thp));
        let text = await look();
        if (text === undefined) {
          needWrites(open);
          await handle.store.transaction((tx) => makeFirstPair({ ...contextOf(handle, c), tx }));
          text = await look();
        }
        return textOutcome('application/jose+json', text ?? '');
      },
    ),
  });

  const recovery = log({
    path: '/rec/{thp}',
    counted: 'tang.recover',
    serve: served('tang.recover', readJwk, async ({ open, handle, c }, jwk) => {
      needWrites(open);
      const { thp: thumbprint = '' } = c.req.param();
      const given = { thumbprint, jwk };
      const text = await handle.store.transaction((tx) => recover({ ...contextOf(handle, c), tx }, given));
      return textOutcome('application/jwk+json', text);
    }),
  });

  const refusing = (error: KmsError, headers: Outcome['headers'] = {}) =>
    log({ path: 'none', counted: 'none', serve: async () => ({ outcome: { ...refused(error), headers } }) });
  const unknown = refusing(unknownPath);
  const notThatWay = (method: string) =>
    refusing(new KmsError('method-not-allowed', `this path takes ${method} alone`), { Allow: method });
  const [notGet, notPost] = [notThatWay('GET'), notThatWay('POST')];

  return async (request: Request, env: RequestEnv): Promise<Response> => {
    const { pathname } = new URL(request.url);
    const [, place, thp] = /^\/+(adv|rec)(?:\/+([\w-]+)|\/*)$/.exec(pathname) ?? [];
    const isRecovery = place === 'rec' && thp !== undefined;
    const handle = isRecovery
      ? request.method === 'POST'
        ? recovery
        : notPost
      : place === 'adv'
        ? request.method === 'GET'
          ? advertise
          : notGet
        : unknown;
    const { outcome } = await handle(contextFor(request, env, thp));
    return respond(outcome);
  };
}

function contextFor(request: Request, env: RequestEnv, thp: string | undefined): AppContext {
  return {
    env,
    req: {
      method: request.method,
      path: request.url,
      url: request.url,
      raw: request,
      query: () => ({}),
      param: () => (thp === undefined ? {} : { thp }),
      header: (name) => request.headers.get(name) ?? undefined,
    },
  };
}

function needWrites(open: OpenState): void {
  const refusal = open.refuseWrites();
  if (refusal) throw refusal;
}

function textOutcome(type: string, content: string): Outcome {
  return { status: 200, body: {}, content, headers: { 'Content-Type': type } };
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Whatever it says that it is: clients differ. */
async function readJwk({ env, req }: AppContext): Promise<unknown> {
  const bytes = await bodySource(env, req.raw).read(publicBodyLimit, undefined);
  if (!bytes) throw new KmsError('too-large', `the body is over the limit of ${publicBodyLimit} bytes`);
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw new KmsError('invalid', 'expected a JWK');
  }
}

/** So many at once, then so many a second. A recovery takes some milliseconds of the one thread that serves all. */
const ofOne = { burst: 60, perSecond: 1 };
const ofAll = { burst: 200, perSecond: 25 };
/** Addresses that are remembered; beyond them newcomers count as one. */
const mostAddresses = 4096;

interface Bucket {
  left: number;
  /** Milliseconds. */
  at: number;
}

/**
 * How often clients of Tang may ask, each address and all of them; of IPv6 what a network gives to one place, a /64.
 */
export class TangLimits {
  readonly #elapsed: () => number;
  readonly #all: Bucket;
  readonly #addresses = new Map<string, Bucket>();

  constructor(elapsed: () => number) {
    this.#elapsed = elapsed;
    this.#all = { left: ofAll.burst, at: elapsed() };
  }

  /** Seconds to wait; 0 for a request that is counted. */
  wait(address: string): number {
    const now = this.#elapsed();
    const bytes = addressBytes(address);
    const key = bytes?.length === 16 ? groupsOf(bytes).slice(0, 4).join(':') : address;
    const one = this.#addresses.get(key) ?? this.#newcomer(key, now);
    const wait = Math.max(waitOf(one, ofOne, now), waitOf(this.#all, ofAll, now));
    if (wait > 0) return wait;
    one.left--;
    this.#all.left--;
    return 0;
  }

  #newcomer(key: string, now: number): Bucket {
    if (this.#addresses.size >= mostAddresses) {
      for (const [each, bucket] of this.#addresses) {
        if (waitOf(bucket, ofOne, now) === 0 && bucket.left >= ofOne.burst) this.#addresses.delete(each);
      }
    }
    const name = this.#addresses.size < mostAddresses ? key : 'others';
    const bucket = this.#addresses.get(name) ?? { left: ofOne.burst, at: now };
    this.#addresses.set(name, bucket);
    return bucket;
  }
}

/** Fills it for the time that has passed. */
function waitOf(bucket: Bucket, { burst, perSecond }: typeof ofOne, now: number): number {
  bucket.left = Math.min(burst, bucket.left + (Math.max(0, now - bucket.at) / 1000) * perSecond);
  bucket.at = now;
  return bucket.left >= 1 ? 0 : (1 - bucket.left) / perSecond;
}
