// Requests that no route serves: an unknown path, or a known one with another method.
import { activityRecord } from '../core/activity.ts';
import { Bearer } from '../core/credential.ts';
import { proofProps } from '../core/proofs/proof-answers.ts';
import { KmsError } from '../errors.ts';
import { credentialOf, goneMeanwhile, identify, sealedError } from './admission.ts';
import type { AppliancePort } from './appliance-port.ts';
import { consoleCookieOf } from './console-cookie.ts';
import { serveUnknownPage } from './public-files.ts';
import { type ApiRequest, decodedPath, headerOf } from './request.ts';
import { failed, type Outcome, refused, unknownPath } from './respond.ts';
import type { ServedPath } from './route.ts';
import type { Router } from './router.ts';
import { baseUrlOf, resolveTenant, type TenantHandle } from './tenant-directory.ts';

export function serveUnmatched(appliance: AppliancePort, router: Router<ServedPath>): ServedPath['serve'] {
  const { world } = appliance;
  const unknownPage = serveUnknownPage(appliance);

  return async (request, state, params) => {
    const methods = router.methodsOf(request.path, request.local === true);
    if (methods.length === 0) {
      if (isInConsole(request)) return unknownPage(request, state, params);
      return { outcome: leadsToConsole(request) ? toConsole : refused(unknownPath) };
    }
    if (state.sealed) return { outcome: refused(sealedError) };
    const allow = methods.join(', ');
    const { status, body } = refused(new KmsError('method-not-allowed', `this path takes ${allow}`));
    const outcome: Outcome = { status, body, headers: { Allow: allow } };
    let handle: TenantHandle | undefined;
    try {
      handle = resolveTenant(state, request);
      const { store, tenant } = handle;
      const cookie = consoleCookieOf(request, baseUrlOf({ open: state, handle }));
      const credential = credentialOf(request) ?? (cookie?.token === undefined ? undefined : new Bearer(cookie.token));
      if (!credential) return { outcome, action: 'none', tenant: tenant.id, granted: false };
      const keyid = await store.transaction((tx) => {
        const found = identify(tx, credential, request, world.now());
        if (!found) return undefined;
        const { id: keyid } = found.caller;
        const props = proofProps(found.caller);
        const address = request.remoteAddress;
        tx.record(activityRecord(world, { keyid, action: 'none', validAction: false, status, props, address }));
        return keyid;
      });
      return { outcome, action: 'none', tenant: tenant.id, granted: false, ...(keyid !== undefined && { keyid }) };
    } catch (error) {
      const gone = handle && goneMeanwhile(state, request, handle);
      return { outcome: gone || error instanceof KmsError ? refused(gone ?? error) : failed(error), action: 'none' };
    }
  };
}

const toConsole: Outcome = { status: 302, body: {}, content: null, headers: { Location: './console' } };

/** A browser at the appliance's address is sent to the console. */
function leadsToConsole(request: ApiRequest): boolean {
  const { method, path } = request;
  return method === 'GET' && path === '/' && headerOf(request, 'accept')?.includes('text/html') === true;
}

function isInConsole({ method, path }: ApiRequest): boolean {
  return (method === 'GET' || method === 'HEAD') && decodedPath(path).startsWith('/console/');
}
