// Requests that no route takes: an unknown path, or a known one with another method.
import { activityRecord } from '../core/activity.ts';
import { Bearer } from '../core/credential.ts';
import { KmsError } from '../errors.ts';
import { credentialOf, goneMeanwhile, identify, sealedError } from './admission.ts';
import type { Appliance } from './appliance.ts';
import { consoleCookieOf } from './console-cookie.ts';
import { serveUnknownPage } from './pages.ts';
import { type AppContext, headerOf } from './request.ts';
import { failed, type Outcome, refused, unknownPath } from './respond.ts';
import { baseUrlOf, type ServedPath } from './route.ts';
import { type TenantHandle, tenantOf } from './tenants.ts';

export function serveUnmatched(
  appliance: Appliance,
  paths: readonly Pick<ServedPath, 'method' | 'path' | 'local' | 'noHead'>[],
): ServedPath['serve'] {
  const { world } = appliance;
  const unknownPage = serveUnknownPage(appliance);
  const known = paths.map((each) => ({ ...each, segments: each.path.split('/') }));

  function methodsOf(path: string, local: boolean): string[] {
    const segments = path.split('/');
    const methods = new Set<string>();
    const taking = known.filter((each) => (local || !each.local) && matches(each.segments, segments));
    const concrete = taking.filter((each) => each.path === path);
    for (const each of concrete.length > 0 ? concrete : taking) {
      methods.add(each.method);
      if (each.method === 'GET' && !each.noHead) methods.add('HEAD');
    }
    return [...methods].sort();
  }

  return async (c, state) => {
    const methods = methodsOf(c.req.path, c.env?.local === true);
    if (methods.length === 0) {
      if (isInConsole(c)) return unknownPage(c, state);
      return { outcome: leadsToConsole(c) ? toConsole : refused(unknownPath) };
    }
    if (state.sealed) return { outcome: refused(sealedError) };
    const allow = methods.join(', ');
    const { status, body } = refused(new KmsError('method-not-allowed', `this path takes ${allow}`));
    const outcome: Outcome = { status, body, headers: { Allow: allow } };
    let handle: TenantHandle | undefined;
    try {
      handle = tenantOf(state, c);
      const { store, tenant } = handle;
      const cookie = consoleCookieOf(c, baseUrlOf({ open: state, handle }));
      const credential = credentialOf(c) ?? (cookie?.token === undefined ? undefined : new Bearer(cookie.token));
      if (!credential) return { outcome, action: 'none', tenant: tenant.id, granted: false };
      const keyid = await store.transaction((tx) => {
        const found = identify(tx, credential, c.env ?? {}, world.now());
        if (!found) return undefined;
        const { id: keyid } = found.caller;
        const address = c.env?.remoteAddress;
        tx.record(activityRecord(world, { keyid, action: 'none', validAction: false, status, address }));
        return keyid;
      });
      return { outcome, action: 'none', tenant: tenant.id, granted: false, ...(keyid !== undefined && { keyid }) };
    } catch (error) {
      const gone = handle && goneMeanwhile(state, c, handle);
      return { outcome: gone || error instanceof KmsError ? refused(gone ?? error) : failed(error), action: 'none' };
    }
  };
}

const toConsole: Outcome = { status: 302, body: {}, content: null, headers: { Location: './console' } };

/** Who opens the appliance's address in a browser wants the console. */
function leadsToConsole(c: AppContext): boolean {
  const { method, path } = c.req;
  return method === 'GET' && path === '/' && headerOf(c, 'accept')?.includes('text/html') === true;
}

function isInConsole({ req: { method, path } }: AppContext): boolean {
  return (method === 'GET' || method === 'HEAD') && path.startsWith('/console/');
}

/** Whether a path without parameters would be taken by one with them, whose it is not: `/assets/search` is no asset. */
export function isShadowed(path: string, pattern: string): boolean {
  return pattern.includes('{') && !path.includes('{') && matches(pattern.split('/'), path.split('/'));
}

function matches(pattern: readonly string[], segments: readonly string[]): boolean {
  return (
    pattern.length === segments.length &&
    pattern.every((part, index) => (part.startsWith('{') ? segments[index] !== '' : part === segments[index]))
  );
}
