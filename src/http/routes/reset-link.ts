// The local endpoint by which the operator makes a reset link to hand over, where no mail is set up.
import { localCaller } from '../../core/credential.ts';
import { type ResetLink, resetLink } from '../../core/password-reset.ts';
import { invalidField } from '../../errors.ts';
import { sealedError } from '../admission.ts';
import type { AppDeps, LocalInput, LocalRoute } from '../deps.ts';
import { linksOf } from '../people.ts';
import { localTenant } from '../tenants.ts';

/** POST `/local/reset-link` with `username`, `email: true` where that is an address; `tenant` may be named in the body too. */
export function resetLinkRoute(deps: AppDeps): LocalRoute {
  return { method: 'POST', path: '/local/reset-link', handle: (input) => makeLink(deps, input) };
}

async function makeLink(deps: AppDeps, { body, tenant: named }: LocalInput): Promise<ResetLink> {
  if (deps.sealed?.()) throw sealedError;
  const refusal = deps.refuseWrites?.();
  if (refusal) throw refusal;
  const { username, tenant: wanted = named, email } = body;
  if (typeof username !== 'string' || username === '') throw invalidField('username', 'is required');
  if (wanted !== undefined && typeof wanted !== 'string') throw invalidField('tenant', 'expected a string');
  const handle = localTenant(deps.tenants, wanted);
  const { tenant, store } = handle;
  const { world } = deps;
  const user = { text: username, is: email === true ? 'email' : 'username' } as const;
  const links = linksOf({ deps, handle });
  return store.transaction(async (tx) => {
    const link = await resetLink({ tx, tenant, world, caller: localCaller }, { user, links });
    // A link lets its holder in as that user: making one is recorded as a change of the user.
    tx.record({
      id: world.newId('act'),
      createdAt: world.now(),
      keyid: localCaller.id,
      action: 'user.update',
      ringname: '',
      validAction: true,
      status: 200,
      props: {},
    });
    return link;
  });
}
