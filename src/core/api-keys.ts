// API keys: make, list, get, change, delete, and find those that may use a ring. The secret is returned once, when the
// key is made.
import type { FullApiKey, SafeApiKey } from '../api/apikeys.ts';
import type { Answer, Body } from '../api/endpoints.ts';
import { hashApiKey } from '../crypto/fast-hash.ts';
import { hashSecret, newApiKeySecret } from '../crypto/secrets.ts';
import { fieldsError, invalidField, KmsError } from '../errors.ts';
import { isOwnAction, maxActionLength, unnamedAction } from '../model/actions.ts';
import { changedFields, changedRights, changedUse } from '../model/activity-details.ts';
import { canonicalBlock } from '../model/addresses.ts';
import { changedFlags, checkFlags, flagName, flagsOfText, parseFlags, ringsNamed } from '../model/flags.ts';
import { type ChangeOp, changedObject, type JsonObject } from '../model/json.ts';
import { isRingName } from '../model/names.ts';
import { lastTime, timestamp } from '../model/timestamp.ts';
import type { Tables } from '../store/port.ts';
import type { PageRequest } from '../store/sql.ts';
import { type ApiKey, type CredentialRow, flagsOfRow } from '../store/tables/api-keys.ts';
import type { User } from '../store/tables/users.ts';
import { type AccountRef, apiKeyThing, findAccount, findApiKey, letsIn } from './accounts.ts';
import { activityRecord } from './activity.ts';
import { noteMade } from './approval-holders.ts';
import { holderNeeded, mayGrant, mayTouch, missingFlag } from './authorization.ts';
import { type Caller, type Context, needQuota } from './context.ts';
import { looksAt, type Reader, readInParts, type WrittenPage } from './pages.ts';
import { listProofs, proofThings } from './proofs/proof-answers.ts';
import { type RingRef, refuseOtherKind, unknownRing } from './rings.ts';
import { findUser, type UserRef, userThing } from './users.ts';

interface CreateApiKeyInput {
  readonly account: AccountRef;
  readonly flags?: JsonObject;
  readonly props?: JsonObject;
  readonly name?: string;
  readonly expiresAt?: number | null;
  readonly allowedAddresses?: readonly string[];
  readonly secret?: boolean;
  readonly active?: boolean;
  readonly unique?: boolean;
}

/** Only this answer has the secret; it is empty for a key without one. A key made by a user belongs to that user. */
export function createApiKey(ctx: Context, input: CreateApiKeyInput): FullApiKey {
  const { tx, caller } = ctx;
  const flags = checkFlags(input.flags ?? {});
  const account = findAccount(tx, input.account);
  mayGrant(caller, parseFlags(flags));
  needQuota(ctx, 'apikeys', () => tx.apiKeys.count());
  needName(ctx, input.name);
  if (input.unique) needFreeName(ctx, input.name);
  const userId = caller.kind === 'user' ? caller.userId : undefined;
  if (userId !== undefined) needPlace(tx, userId);
  const made = makeApiKey(ctx, {
    accountId: account.id,
    userId,
    flags,
    props: input.props ?? {},
    name: input.name,
    expiresAt: input.expiresAt,
    addresses: input.allowedAddresses && canonicalAddresses(input.allowedAddresses),
    hasSecret: input.secret,
    active: input.active,
    createdBy: caller.id,
  });
  noteMade(ctx, made.keyid);
  ctx.note({
    object: apiKeyThing({ id: made.keyid, name: made.name }),
    ...(made.active && changedRights(undefined, parseFlags(flags))),
  });
  return made;
}

/**
 * Throws `forbidden` for the name of a key as which programs log in by name and which the caller may not touch: with
 * two keys of that name, they could not.
 */
function needName({ tx, caller, world }: Context, name: string | undefined): void {
  if (name === undefined) return;
  const ids = (['jwt', 'certificate'] as const).flatMap((kind) =>
    tx.apiKeys.idsToLogInByName(name, kind, world.now(), 2),
  );
  for (const id of new Set(ids)) mayTouch(caller, findApiKey(tx, id));
}

/** Throws `conflict` if another key has the name, or none was given. */
function needFreeName({ tx }: Pick<Context, 'tx'>, name = ''): void {
  if (name === '') throw invalidField('name', 'is required for a key that is to be unique');
  if (tx.apiKeys.idsByName(name, 1).length === 0) return;
  throw fieldsError('conflict', [{ field: 'name', message: 'another API key has this name' }]);
}

/** API keys per user: every answer about a user names them. */
const mostOwned = 10_000;

/** Throws `quota` if the user owns as many keys as allowed. */
function needPlace({ apiKeys }: Pick<Tables, 'apiKeys'>, userId: string): void {
  if (apiKeys.countOfUser(userId, mostOwned) < mostOwned) return;
  throw new KmsError('quota', `a user owns at most ${mostOwned} API keys`);
}

/** Oldest first. */
export function listApiKeys(
  { store }: Reader,
  { page }: { readonly page: PageRequest },
): Promise<WrittenPage<SafeApiKey>> {
  return readInParts(looksAt(store), page, ({ apiKeys }, part) => apiKeys.list(part, safeApiKey));
}

export function getApiKey(
  ctx: Context,
  { keyid, proofs = false }: { readonly keyid: string; readonly proofs?: boolean },
): Answer<'getApiKey'> {
  return { ...safeApiKey(findApiKey(ctx.tx, keyid)), ...(proofs && listProofs(ctx, { keyid })) };
}

/** `key` is the secret. */
export function deleteApiKey(ctx: Context, input: { readonly key: string }): Record<string, never> {
  return erase(ctx, findBySecret(ctx.tx, input.key));
}

export function deleteApiKeyById(ctx: Context, input: { readonly keyid: string }): Record<string, never> {
  return erase(ctx, findApiKey(ctx.tx, input.keyid));
}

function erase(ctx: Context, key: ApiKey): Record<string, never> {
  const { tx, caller } = ctx;
  mayTouch(caller, key);
  const needHolder = holderNeeded(ctx);
  tx.apiKeys.erase(key.id);
  needHolder();
  ctx.note({ object: apiKeyThing(key), ...changedRights(flagsOfText(key.flagsText), undefined) });
  return {};
}

/** The key with this secret, if there is one. */
export function bySecret({ apiKeys }: Pick<Tables, 'apiKeys'>, secret: string): ApiKey | undefined {
  const hash = hashApiKey(secret);
  return hash === undefined ? undefined : apiKeys.bySecretHash(hash);
}

/** The key with this secret. A text without a secret’s form is not looked up. */
function findBySecret(tables: Pick<Tables, 'apiKeys'>, secret: string): ApiKey {
  const key = bySecret(tables, secret);
  if (!key) throw unknownApiKey();
  return key;
}

function unknownApiKey(): KmsError {
  return new KmsError('not-found', 'there is no such API key');
}

interface ApiKeyDraft {
  readonly accountId: string;
  /** The owning user: `createdBy`, if a user made it. */
  readonly userId?: string | undefined;
  readonly flags: JsonObject;
  readonly props: JsonObject;
  readonly name?: string | undefined;
  readonly expiresAt?: number | null | undefined;
  readonly addresses?: readonly string[] | undefined;
  /** Default: true. */
  readonly hasSecret?: boolean | undefined;
  /** Default: true. */
  readonly active?: boolean | undefined;
  readonly createdBy: string;
}

/** The caller has checked permission and quota. */
export function makeApiKey({ tx, world }: Pick<Context, 'tx' | 'world'>, draft: ApiKeyDraft): FullApiKey {
  const { hasSecret = true } = draft;
  const secret = hasSecret ? newApiKeySecret(world.random) : undefined;
  const now = world.now();
  const key = {
    id: world.newId('apik'),
    secretHash: secret === undefined ? undefined : hashSecret(secret),
    hasSecret,
    name: draft.name ?? '',
    active: draft.active ?? true,
    expiresAt: draft.expiresAt ?? undefined,
    addresses: draft.addresses ?? [],
    accountId: draft.accountId,
    userId: draft.userId,
    flagsText: JSON.stringify(draft.flags),
    rings: ringsNamed(parseFlags(draft.flags)),
    props: draft.props,
    createdAt: now,
    createdBy: draft.createdBy,
    updatedAt: now,
  };
  tx.apiKeys.insert(key);
  tx.waysIn.note(key.id, draft.createdBy);
  return { key: secret ?? '', ...safeApiKey({ ...key, usedAt: undefined }) };
}

/** `key` is the secret; the answer repeats it. */
export function updateApiKeyBySecret(
  ctx: Context,
  input: Body<'updateApiKeyBySecret'>,
): Answer<'updateApiKeyBySecret'> {
  const updated = update(ctx, findBySecret(ctx.tx, input.key), input, {});
  return { key: input.key, ...updated };
}

export function updateApiKeyById(ctx: Context, input: Body<'updateApiKey'>): Answer<'updateApiKey'> {
  return update(ctx, findApiKey(ctx.tx, input.apikeyid), input, input);
}

function update(
  ctx: Context,
  key: ApiKey,
  input: Omit<Body<'updateApiKey'>, 'apikeyid' | 'owner'>,
  { owner }: Pick<Body<'updateApiKey'>, 'owner'>,
): Answer<'updateApiKey'> {
  const { tx, caller, world } = ctx;
  mayTouch(caller, key);
  const flags = input.flags ? changedFlags(input.op, flagsOfRow(key), checkFlags(input.flags)) : flagsOfRow(key);
  if (input.flags && input.op === 'merge') checkFlags(flags);
  const compiled = parseFlags(flags);
  if (input.flags || owner !== undefined) mayGrant(caller, compiled);
  if (input.name !== undefined && input.name !== key.name) needName(ctx, input.name);
  const { allowedAddresses, expiresAt } = input;
  const accountId = input.references?.accountId;
  const changed = {
    name: input.name ?? key.name,
    active: input.active ?? key.active,
    expiresAt: expiresAt === undefined ? key.expiresAt : (expiresAt ?? undefined),
    addresses: allowedAddresses ? canonicalAddresses(allowedAddresses) : key.addresses,
    accountId: accountId === undefined ? key.accountId : findAccount(tx, { id: accountId }).id,
    userId: owner === undefined ? key.userId : findUser(tx, { text: owner, is: 'id' }).id,
    props: input.props ? boundedProps(input.op, key.props, input.props) : key.props,
    updatedAt: world.now(),
  };
  const owners = ownersTouched(tx, key.userId, changed.userId);
  for (const { user } of owners) if (user) mayTouch(caller, user);
  if (changed.userId !== undefined && changed.userId !== key.userId) needPlace(tx, changed.userId);
  const flagsText = input.flags ? JSON.stringify(flags) : key.flagsText;
  const newFlags = flagsText === key.flagsText ? undefined : { flagsText, rings: ringsNamed(compiled) };
  const needHolder = holderNeeded(ctx);
  tx.apiKeys.update(key.id, { ...changed, flags: newFlags });
  if (changed.userId !== undefined && changed.userId !== key.userId) tx.waysIn.note(key.id, changed.userId);
  needHolder();
  const after = { ...key, ...changed, flagsText };
  const answer = safeApiKey(after);
  const { updatedAt: _, ...said } = answer;
  ctx.note({
    object: apiKeyThing(after),
    changed: changedFields(
      { ...safeApiKey(key), owner: key.userId ?? null },
      { ...said, owner: changed.userId ?? null },
    ),
    objects: [
      ...owners.map(({ id, user }) => (user ? userThing(user) : { type: 'user' as const, id })),
      // They hand out what the key gains.
      ...(newFlags ? proofThings(tx, key.id) : []),
    ],
    ...changedUse(
      { active: key.active, flags: flagsOfText(key.flagsText) },
      { active: changed.active, flags: compiled },
    ),
  });
  return { ...answer, op: input.op };
}

/**
 * The new and the former owner of a key, empty if the owner stays; the former one may be deleted. Their `keys` change.
 */
function ownersTouched(
  { users }: Pick<Tables, 'users'>,
  before: string | undefined,
  after: string | undefined,
): { readonly id: string; readonly user: User | undefined }[] {
  const owners: { id: string; user: User | undefined }[] = [];
  for (const id of before === after ? [] : [after, before]) {
    if (id !== undefined) owners.push({ id, user: users.byId(id) });
  }
  return owners;
}

/** Maximum of allowed addresses and blocks. */
const mostAddresses = 100;

/** Each once, in canonical form. Throws `invalid` for anything else. */
function canonicalAddresses(given: readonly string[]): string[] {
  if (given.length > mostAddresses)
    throw invalidField('allowedAddresses', `must have at most ${mostAddresses} entries`);
  const blocks = given.map((text, index) => {
    const block = canonicalBlock(text);
    if (block !== undefined) return block;
    throw invalidField(
      `allowedAddresses.${index}`,
      'expected an IPv4 or IPv6 address, or a block of them such as 192.0.2.0/24',
    );
  });
  return [...new Set(blocks)];
}

/**
 * Maximum length of `props` after merging, in characters of JSON. A single body is bounded, many merges would not be.
 */
export const longestMerged = 1024 * 1024;

function boundedProps(op: ChangeOp, props: JsonObject, given: JsonObject): JsonObject {
  const after = changedObject(op, props, given);
  if (op !== 'merge') return after;
  const { length } = JSON.stringify(after);
  if (length > longestMerged && length > JSON.stringify(props).length) {
    throw invalidField('props', `would be longer than ${longestMerged} characters`);
  }
  return after;
}

interface SearchByRingInput {
  readonly ring: RingRef;
  /** Include keys that match the ring by a wildcard. */
  readonly wildcard: boolean;
  readonly page: PageRequest;
}

/** Keys with a true flag for the ring, oldest first. */
export async function searchApiKeysByRing(
  { store, caller }: Reader & { readonly caller: Caller },
  { ring, wildcard, page }: SearchByRingInput,
): Promise<WrittenPage<SafeApiKey>> {
  const looks = looksAt(store);
  const name = await looks.look((tables) => ringToSearch(tables, caller, ring));
  return readInParts(looks, page, ({ apiKeys }, part) => apiKeys.listByRing(name, wildcard, part, safeApiKey));
}

/**
 * A caller that may not read the ring does not learn whether it exists: a name is searched as given, an id is refused.
 */
export function ringToSearch(
  { rings, managedKeys }: Pick<Tables, 'rings' | 'managedKeys'>,
  caller: Caller,
  ref: RingRef,
): string {
  const found = 'name' in ref ? rings.byName('ks', ref.name.toLowerCase()) : rings.byId('ks', ref.id);
  const mayRead = caller.flags.allows('keyring.read', 'name' in ref ? ref.name : found?.name);
  if (!mayRead && 'id' in ref) throw missingFlag(flagName('keyring.read'));
  if (!mayRead && 'name' in ref) return ref.name.toLowerCase();
  if (!found) refuseOtherKind({ managedKeys }, ref);
  if (found?.deletedAt !== undefined || !found) throw unknownRing();
  return found.name;
}

function safeApiKey(key: Omit<ApiKey, 'seq' | 'hasSecret'>): SafeApiKey {
  return {
    keyid: key.id,
    name: key.name,
    active: key.active,
    expiresAt: key.expiresAt ?? null,
    allowedAddresses: [...key.addresses],
    references: { accountId: key.accountId },
    flags: flagsOfRow(key),
    props: key.props,
    createdAt: timestamp(key.createdAt),
    createdBy: key.createdBy ?? null,
    updatedAt: timestamp(key.updatedAt),
    lastUsedAt: key.usedAt ?? null,
  };
}

/** Oldest first. */
export async function listAccountApiKeys(
  { store }: Reader,
  input: { readonly account: AccountRef; readonly page: PageRequest },
): Promise<WrittenPage<SafeApiKey>> {
  const looks = looksAt(store);
  const { id } = await looks.look((tables) => findAccount(tables, input.account));
  return readInParts(looks, input.page, ({ apiKeys }, part) => apiKeys.listByAccount(id, part, safeApiKey));
}

/** Keys read at a time: a few milliseconds. */
const partOfNamed = 50;

/** Those that the user owns, in the order of their ids, at most `most`. */
export async function listUserApiKeys(
  { store }: Reader,
  { user, most }: { readonly user: UserRef; readonly most: number },
): Promise<{ data: SafeApiKey[]; hasMore: boolean }> {
  const looks = looksAt(store);
  const { keys } = await looks.look((tables) => findUser(tables, user));
  const data: SafeApiKey[] = [];
  for (let at = 0; at < Math.min(keys.length, most); at += partOfNamed) {
    const ids = keys.slice(at, Math.min(at + partOfNamed, most));
    // One that was deleted meanwhile is left out.
    const found = await looks.look(({ apiKeys }) => ids.map((id) => apiKeys.byId(id)));
    data.push(...found.filter((key) => key !== undefined).map(safeApiKey));
  }
  await looks.durable();
  return { data, hasMore: keys.length > most };
}

interface ReportedActivity {
  readonly action?: string;
  /** Ignored: the record belongs to the validated key. */
  readonly apikeyId?: string;
  readonly createdAt?: number;
  readonly props?: JsonObject;
  readonly ringname?: string;
  readonly validAction?: boolean;
}

interface ValidateInput {
  /** The secret. */
  readonly key: string;
  readonly activity?: ReportedActivity;
}

/** Characters of JSON. Bounded because the log is kept for ever. */
const longestProps = 64 * 1024;

/** Only an existing key gets a record. */
export function validateApiKey(ctx: Context, input: ValidateInput): { valid: boolean } {
  if (input.activity) checkReport(input.activity);
  const hash = hashApiKey(input.key);
  const key = hash === undefined ? undefined : ctx.tx.apiKeys.credential(hash);
  return key ? validated(ctx, key, input.activity) : { valid: false };
}

function validated(
  { tx, caller, world }: Context,
  key: CredentialRow,
  activity: ReportedActivity | undefined,
): { valid: boolean } {
  const valid = letsIn(key, world.now());
  if (valid) tx.apiKeys.noteUse(key.id, world.now());
  if (!activity) return { valid };
  const { action, createdAt, props, ringname, validAction } = activity;
  const record = activityRecord(world, {
    keyid: key.id,
    action: action || unnamedAction,
    ringname: ringname?.toLowerCase() ?? '',
    validAction: validAction ?? valid,
    props: props ?? {},
  });
  tx.record({ ...record, createdAt: createdAt ?? record.createdAt, reporter: caller.id });
  return { valid };
}

/** Throws `invalid` for a report that no caller may make, whether or not the key exists. */
function checkReport({ action = '', createdAt = 0, props = {}, ringname = '' }: ReportedActivity): void {
  if ([...action].length > maxActionLength) {
    throw invalidField('activity.action', `has at most ${maxActionLength} characters`);
  }
  if (isOwnAction(action)) {
    throw invalidField('activity.action', 'is a name that the service records itself; use a word of your own');
  }
  if (!Number.isSafeInteger(createdAt) || createdAt < 0 || createdAt > lastTime) {
    throw invalidField('activity.createdAt', `expected an integer from 0 to ${lastTime}`);
  }
  if (ringname !== '' && !isRingName(ringname)) {
    throw invalidField('activity.ringname', 'expected the name of a keyring');
  }
  if (JSON.stringify(props).length > longestProps) {
    throw invalidField('activity.props', `has at most ${longestProps} characters of JSON`);
  }
}
