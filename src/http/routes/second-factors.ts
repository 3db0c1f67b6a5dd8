// Routes of second factors and passkeys. Passwords and passkeys are verified before the transaction, with backoff after
// failures; the proof is consumed inside it.
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
        // A name that no username equals.
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

/** Undefined for a proof that was refused; the operation reports it. */
function unlessInvalid(error: unknown): undefined {
  if (error instanceof KmsError && error.code === 'invalid') return undefined;
  throw error;
}

/** The origin at which passkeys are made and used. */
export function placeOf({ handle, appliance, origin }: Input<unknown>): PasskeyPlace {
  return { tenant: handle.tenant, world: appliance.world, origin };
}

/** The names under which failed tries are counted. */
interface Tried {
  readonly name: string;
  readonly userId?: string;
}

/**
 * Runs a check with backoff. `isRight` says whether its result counts as a success or a failure, or, if undefined, as
 * neither. A check that finds the user behind the name calls `mayBe` with the user's id: if false, it must give the
 * same answer as for a wrong input.
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

/** The names under which a logged-in user's failures are counted. */
export function triedAs({ handle }: Input<unknown>, userId: string): Promise<Tried> {
  return handle.store.transaction(({ users }) => ({ name: users.byId(userId)?.username ?? '', userId }));
}

interface Given {
  readonly currentPassword?: string;
  readonly code?: string;
}

/** Checks that the session's user is still the one asking. Undefined if the proof is wrong. */
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
