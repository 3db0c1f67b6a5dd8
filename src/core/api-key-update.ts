// Changing an API key, by its secret or by its id: `merge` sets what is given, `replace` puts it in place of the whole
// field, `delete` takes the named entries away. `active` and `references` are set under any of them.
import type { ApiKey } from '../store/tables/api-keys.ts';
import { flagsOfRow } from '../store/tables/api-keys.ts';
import { findAccount } from './account-lookup.ts';
import { findApiKey, findBySecret } from './api-keys.ts';
import type { Context } from './context.ts';
import { checkFlags, flagsOfText, parseFlags, ringsNamed } from './flags.ts';
import { mayGrant, mayTouch } from './grants.ts';
import { type JsonObject, mergeDeep, withoutEntries } from './json.ts';

export type UpdateOp = 'delete' | 'merge' | 'replace';

export interface ApiKeyUpdate {
  readonly op: UpdateOp;
  readonly active?: boolean;
  readonly references?: { readonly accountId?: string };
  readonly flags?: JsonObject;
  readonly props?: JsonObject;
}

export interface UpdatedApiKey {
  readonly keyid: string;
  readonly op: UpdateOp;
  readonly active: boolean;
  readonly references: { readonly accountId: string };
  readonly flags: JsonObject;
  readonly props: JsonObject;
}

/** `key` is the secret, and answered as it was given. */
export async function updateApiKeyBySecret(
  ctx: Context,
  input: ApiKeyUpdate & { readonly key: string },
): Promise<UpdatedApiKey & { key: string }> {
  const updated = await update(ctx, await findBySecret(ctx.tx, input.key), input);
  return { key: input.key, ...updated };
}

export async function updateApiKeyById(
  ctx: Context,
  input: ApiKeyUpdate & { readonly apikeyid: string },
): Promise<UpdatedApiKey> {
  return update(ctx, await findApiKey(ctx.tx, input.apikeyid), input);
}

async function update({ tx, caller, world }: Context, key: ApiKey, input: ApiKeyUpdate): Promise<UpdatedApiKey> {
  mayTouch(caller, { id: key.id, flags: flagsOfText(key.flagsText) });
  const flags = input.flags ? changedFlags(input.op, flagsOfRow(key), checkFlags(input.flags)) : flagsOfRow(key);
  const compiled = parseFlags(flags);
  if (input.flags) mayGrant(caller, compiled);
  const accountId = input.references?.accountId;
  const changed = {
    active: input.active ?? key.active,
    accountId: accountId === undefined ? key.accountId : (await findAccount(tx, { id: accountId })).id,
    flagsText: JSON.stringify(flags),
    rings: ringsNamed(compiled),
    props: input.props ? changedProps(input.op, key.props, input.props) : key.props,
    updatedAt: world.now(),
  };
  await tx.apiKeys.update(key.id, changed);
  const { active, props } = changed;
  return { keyid: key.id, op: input.op, active, references: { accountId: changed.accountId }, flags, props };
}

function changedProps(op: UpdateOp, props: JsonObject, given: JsonObject): JsonObject {
  if (op === 'replace') return given;
  return op === 'merge' ? mergeDeep(props, given) : withoutEntries(props, given);
}

/** Flag names compare without regard to case, so a name given takes the place of each that differs in case alone. */
function changedFlags(op: UpdateOp, flags: JsonObject, given: JsonObject): JsonObject {
  if (op === 'replace') return given;
  const names = new Set(Object.keys(given).map((name) => name.toLowerCase()));
  const kept = Object.entries(flags).filter(([name]) => !names.has(name.toLowerCase()));
  return Object.fromEntries(op === 'merge' ? [...kept, ...Object.entries(given)] : kept);
}
