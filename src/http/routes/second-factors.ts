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
import type { Input, RoutesOf } from '../route.ts';
import { baseUrlOf } from '../tenant-directory.ts';

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
  passkeyLoginOptions: (_ctx, input) => loginOptions(placeOf(input)),
  loginWithPasskey: {
    async prepare(input) {
      const { body, open, handle } = input;
      const { lifetimes } = open.people;
      const { credential } = body;
      const subject = { purpose: 'login', userId: '' } as const;
      const { factor, use } = await atPace(
        input,
        // Not as a user is called.
        { name: `passkey ${credential.id}` },
        async () => {
          const factor = await handle.store.transaction((tables) => tables.secondFactors.byCredentialId(credential.id));
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

/** Under what failures are counted. */
interface Tried {
  readonly name: string;
  readonly userId?: string;
}

/**
 * Runs a check at the pace that the tries before allow. `isRight` says whether what it found counts as a success or as
 * a failure, or, undefined, as neither. A check that finds out whose the name is asks `mayBe` with the user's id: false
 * says that it must come to the answer for what is wrong.
 */
export async function atPace<T>(
  { open, handle, address }: Input<unknown>,
  tried: Tried,
  check: (mayBe: (userId: string) => boolean) => Promise<T>,
  isRight: (found: T) => boolean | undefined,
): Promise<T> {
  const { backoff } = open.people;
  const origin = { tenant: handle.tenant.id, address };
  const turns = [await backoff.begin({ ...origin, ...tried })];
  const mayBe = (userId: string): boolean => {
    const turn = backoff.take({ ...origin, userId });
    if (turn) turns.unshift(turn);
    return turn !== undefined;
  };
  try {
    const found = await check(mayBe);
    const right = isRight(found);
    for (const turn of turns) {
      if (right === true) turn.succeeded();
      if (right === false) turn.failed();
    }
    return found;
  } finally {
    for (const turn of turns) turn.abandoned();
  }
}

/** Under what failures of a user are counted who is logged in. */
export function triedAs({ handle }: Input<unknown>, userId: string): Promise<Tried> {
  return handle.store.transaction(({ users }) => ({ name: users.byId(userId)?.username ?? '', userId }));
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
    store.transaction((tables) => checkCode(tables, { userId, code: code ?? '', now: appliance.world.now() }));
  const byPassword = async (): Promise<Proof | undefined> => {
    const candidate = await store.transaction((tables) => ownCandidate(tables, caller));
    const { passwordHash } = candidate;
    const passed = await checkCandidate(open.people.hasher, candidate, currentPassword ?? '');
    return passed && passwordHash !== undefined ? { is: 'password', passwordHash } : undefined;
  };
  const check = currentPassword === undefined ? byCode : byPassword;
  return atPace(input, await triedAs(input, userId), check, (proof) => proof !== undefined);
}
