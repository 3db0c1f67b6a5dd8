// The appliance as a Tang server: /adv advertises the keys to bind to, and /rec recovers. The protocol knows neither
// credentials nor tenants: clients are admitted by address, and the host selects the tenant as elsewhere. For who gets
// which response, see docs/guide-tang.md.
import { advertised, makeFirstPair, recover, type TangContext } from '../../core/tang.ts';
import { KmsError } from '../../errors.ts';
import { sealedError } from '../../http/admission.ts';
import type { AppliancePort, OpenState, State } from '../../http/appliance-port.ts';
import { publicBodyLimit, tooLarge } from '../../http/body.ts';
import type { ApiRequest } from '../../http/request.ts';
import type { Answer, Handler } from '../../http/request-log.ts';
import { type Outcome, type RequestResult, refused, unknownPath } from '../../http/respond.ts';
import type { Ways } from '../../http/surface.ts';
import { resolveTenant, type TenantHandle } from '../../http/tenant-directory.ts';
import { TangLimits } from './limits.ts';

/** The thumbprint in the path, if there is one. */
type Thumbprint = string | undefined;

/** One of Tang's two operations. */
interface TangOperation<B> {
  readonly action: string;
  read(request: ApiRequest): Promise<B>;
  run(at: Place, thumbprint: Thumbprint, body: B): Promise<Outcome>;
}

/** The tenant and context in which an operation runs. */
interface Place {
  readonly open: OpenState;
  readonly handle: TenantHandle;
  readonly context: Omit<TangContext, 'tx'>;
}

export function tangSurface(appliance: AppliancePort, ways: Ways): Answer {
  const { world } = appliance;
  const limits = new TangLimits(world.elapsed);

  function handlerOf<B>(path: string, operation: TangOperation<B>): Handler<Thumbprint> {
    const { action } = operation;
    return ways.logged(
      { path, counted: action },
      async (request: ApiRequest, state: State, thumbprint: Thumbprint): Promise<RequestResult> => {
        let tenant: { readonly tenant?: string } = {};
        try {
          if (state.sealed) throw sealedError;
          const handle = resolveTenant(state, request);
          tenant = { tenant: handle.tenant.id };
          needAddress(limits, request);
          // Read before queueing, so that a slow body does not hold up other requests.
          const body = await operation.read(request);
          const turn = ways.queue.enter(handle.tenant.id, () => 'tang');
          if (turn) await turn;
          const context = { tenant: handle.tenant, world, address: request.remoteAddress };
          const outcome = await operation
            .run({ open: state, handle, context }, thumbprint, body)
            .finally(() => ways.queue.leave());
          return { outcome, action, ...tenant };
        } catch (error) {
          return { outcome: refused(error), action, ...tenant };
        }
      },
    );
  }

  const refusing = (error: KmsError, headers: Outcome['headers'] = {}): Handler<Thumbprint> =>
    ways.logged({ path: 'none', counted: 'none' }, async () => ({ outcome: { ...refused(error), headers } }));
  const taking = (method: string): Handler<Thumbprint> =>
    refusing(new KmsError('method-not-allowed', `this path takes only ${method}`), { Allow: method });
  const operations = {
    adv: { method: 'GET', handler: handlerOf('/adv/{thp}', advertise), otherwise: taking('GET') },
    rec: { method: 'POST', handler: handlerOf('/rec/{thp}', recovery), otherwise: taking('POST') },
  };
  const unknown = refusing(unknownPath);

  return (request) => {
    const { name, thumbprint } = matchPath(request.path);
    const operation = name && operations[name];
    if (!operation) return unknown(request, undefined);
    const { method, handler, otherwise } = operation;
    return (request.method === method ? handler : otherwise)(request, thumbprint);
  };
}

/** Clients put any number of slashes between the parts. */
function matchPath(path: string): { name?: 'adv' | 'rec'; thumbprint?: string } {
  const [, name, thumbprint] = /^\/+(adv|rec)(?:\/+([\w-]+)|\/*)$/.exec(path) ?? [];
  if (name === 'adv') return thumbprint === undefined ? { name } : { name, thumbprint };
  return name === 'rec' && thumbprint !== undefined ? { name, thumbprint } : {};
}

/** Throws `forbidden` for an address that is not allowed, and `rate-limited` for too many requests. */
function needAddress(limits: TangLimits, { remoteAddress: address, tangClients }: ApiRequest): void {
  if (address === undefined || !tangClients?.has(address)) {
    throw new KmsError('forbidden', 'this address may not ask (--tang-allow)');
  }
  const wait = limits.wait(address);
  if (wait > 0) throw new KmsError('rate-limited', 'too many requests from this address; wait', { retryAfter: wait });
}

const advertise: TangOperation<void> = {
  action: 'tang.advertise',
  read: async () => {},
  async run({ open, handle, context }, thumbprint) {
    const look = (): Promise<string | undefined> =>
      handle.store.transaction((tables) => advertised(tables, handle.tenant.keys, thumbprint));
    let text = await look();
    if (text === undefined) {
      needWrites(open);
      await handle.store.transaction((tx) => makeFirstPair({ ...context, tx }));
      text = await look();
    }
    return textOutcome('application/jose+json', text ?? '');
  },
};

const recovery: TangOperation<unknown> = {
  action: 'tang.recover',
  read: readJwk,
  async run({ open, handle, context }, thumbprint = '', jwk) {
    needWrites(open);
    const text = await handle.store.transaction((tx) => recover({ ...context, tx }, { thumbprint, jwk }));
    return textOutcome('application/jwk+json', text);
  },
};

function needWrites(open: OpenState): void {
  const refusal = open.refuseWrites();
  if (refusal) throw refusal;
}

function textOutcome(type: string, content: string): Outcome {
  return { status: 200, body: {}, content, headers: { 'Content-Type': type } };
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Reads the body as JSON whatever its declared type: clients differ. */
async function readJwk({ body }: ApiRequest): Promise<unknown> {
  const bytes = await body.read(publicBodyLimit, undefined);
  if (!bytes) throw tooLarge(publicBodyLimit);
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw new KmsError('invalid', 'expected a JWK');
  }
}
