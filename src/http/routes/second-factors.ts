// Routes of second factors and passkeys. Passwords and passkeys are checked before the transaction, at the pace that
// the tries before allow; what was found is made good in it.
import type { loginEndpoints } from '../../api/logins.ts';
import type { secondFactorEndpoints } from '../../api/second-factors.ts';
import type { Caller } from '../../core/context.ts';
import { checkCandidate, loginWithPasskey, ownCandidate } from '../../core/logins.ts';
import { loginOptions, type PasskeyPlace, verifyNewPasskey, verifyPasskeyUse } from '../../core/passkeys.ts';
import {
  beginPasskey,
  beginTotp,
  checkCode,
  finishPasskey,
  finishTotp,
  listSecondFactors,
  type Proof,
  removeSecondFactor,
  renewRecoveryCodes,
} from '../../core/second-factors.ts';
import { sessionOf } from '../../core/sessions.ts';
import { invalidField, KmsError } from '../../errors.ts';
import { baseUrlOf, type Input, type RoutesOf } from '../route.ts';

export const secondFactorRoutes: RoutesOf<(typeof secondFactorEndpoints)[number]['id']> = {
  listSecondFactors: (ctx) => listSecondFactors(ctx),
  beginTotp: {
    async prepare(input, caller) {
      const proof = await prove(input, caller, input.body);
      const { name = '' } = input.body;
      const issuer = new URL(baseUrlOf(input)).host;
      return (ctx) => beginTotp(ctx, { name, issuer, proof });
    },
  },
  finishTotp: (ctx, { body }) => finishTotp(ctx, body),
  beginPasskey: {
    async prepare(input, caller) {
      const proof = await prove(input, caller, input.body);
      return (ctx) => beginPasskey(ctx, { origin: input.origin, proof });
    },
  },
  finishPasskey: {
    async prepare(input, caller) {
      sessionOf(caller);
      const { credential, name = '' } = input.body;
      const verified = await verifyNewPasskey(placeOf(input), caller.id, credential);
      const { transports = [] } = credential.response;
      return (ctx) => finishPasskey(ctx, { name, transports, verified });
    },
  },
  removeSecondFactor: {
    async prepare(input, caller) {
      const proof = await prove(input, caller, input.body);
      return (ctx) => removeSecondFactor(ctx, { id: input.body.id, proof });
    },
  },
  renewRecoveryCodes: {
    async prepare(input, caller) {
      const proof = await prove(input, caller, input.body);
      return (ctx) => renewRecoveryCodes(ctx, { proof });
    },
  },
};

type PasskeyLogins = Pick<RoutesOf<(typeof loginEndpoints)[number]['id']>, 'passkeyLoginOptions' | 'loginWithPasskey'>;

export const passkeyLoginRoutes: PasskeyLogins = {
  passkeyLoginOptions: async (_ctx, input) => loginOptions(placeOf(input)),
  loginWithPasskey: {
    async prepare(input) {
      const { body, open, handle } = input;
      const { lifetimes } = open.people;
      const { credential } = body;
      const subject = { purpose: 'login', userId: '' } as const;
      const { factor, use } = await atPace(
        input,
        credential.id,
        async () => {
          const factor = await handle.store.peek((tables) => tables.secondFactors.byCredentialId(credential.id));
          const checked = verifyPasskeyUse(placeOf(input), factor, subject, credential);
          return { factor, use: await checked.catch(unlessInvalid) };
        },
        ({ use }) => use !== undefined,
      );
      return (ctx) => loginWithPasskey(ctx, { userId: factor?.userId, use, lifetimes });
    },
  },
};

/** Undefined for what was not accepted, which the operation says. */
function unlessInvalid(error: unknown): undefined {
  if (error instanceof KmsError && error.code === 'invalid') return undefined;
  throw error;
}

/** Where the page is at which passkeys are made and used. */
export function placeOf({ handle, appliance, origin }: Input<unknown>): PasskeyPlace {
  return { tenant: handle.tenant, world: appliance.world, origin };
}

/**
 * Runs a check at the pace that the tries before allow. `isRight` says whether what it found counts as a success or as a
 * failure, or, undefined, as neither.
 */
export async function atPace<T>(
  { open, handle, address }: Input<unknown>,
  name: string,
  check: () => Promise<T>,
  isRight: (found: T) => boolean | undefined,
): Promise<T> {
  const attempt = await open.people.backoff.begin({ tenant: handle.tenant.id, name, address });
  try {
    const found = await check();
    const right = isRight(found);
    if (right === true) attempt.succeeded();
    if (right === false) attempt.failed();
    return found;
  } finally {
    attempt.abandoned();
  }
}

/** The name under which failures of a user are counted. */
export function nameOf({ handle }: Input<unknown>, userId: string): Promise<string> {
  return handle.store.peek(async ({ users }) => (await users.byId(userId))?.username ?? '');
}

interface Given {
  readonly currentPassword?: string;
  readonly code?: string;
}

/** Whether it is still the user who has the session. Undefined for what is wrong. */
async function prove(
  input: Input<unknown>,
  caller: Caller,
  { currentPassword, code }: Given,
): Promise<Proof | undefined> {
  sessionOf(caller);
  const { appliance, open, handle } = input;
  const { id: userId } = caller;
  const { store } = handle;
  if (currentPassword === undefined && code === undefined) {
    throw invalidField('currentPassword', 'is required, or a code in its place');
  }
  const byCode = (): Promise<Proof | undefined> =>
    store.peek((tables) => checkCode(tables, { userId, code: code ?? '', now: appliance.world.now() }));
  const byPassword = async (): Promise<Proof | undefined> => {
    const candidate = await store.peek((tables) => ownCandidate(tables, caller));
    const { passwordHash } = candidate;
    const passed = await checkCandidate(open.people.hasher, candidate, currentPassword ?? '');
    return passed && passwordHash !== undefined ? { is: 'password', passwordHash } : undefined;
  };
  const check = currentPassword === undefined ? byCode : byPassword;
  return atPace(input, await nameOf(input, userId), check, (proof) => proof !== undefined);
}
