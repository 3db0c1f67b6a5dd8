// Objects as approvers see them, before and after an act: the fields that matter, without secrets.
import { type ActivityDetails, mostNamed, type ResourceRef } from '../model/activity-details.ts';
import type { FurtherAct } from '../model/approval-rules.ts';
import { isJsonObject, type JsonObject } from '../model/json.ts';
import type { Tables } from '../store/port.ts';
import type { ApprovalRule } from '../store/tables/approval-rules.ts';
import type { Ring } from '../store/tables/rings.ts';
import { termsTold, userNamed } from './approval-rules.ts';
import { awsIdOf } from './aws-names.ts';
import type { Context } from './context.ts';
import { askersOf, behind } from './persons.ts';

/** Characters in JSON. */
const most = 16_384;
/** Entries of a field of what is longer. */
const mostShown = 20;

/** Undefined for a thing that is not there, or whose fields are not shown. */
export function shownObject(tx: Tables, object: ResourceRef): JsonObject | undefined {
  const shown = fieldsOf(tx, object);
  if (!shown || isShort(shown)) return shown;
  const { props: _props, keyProps: _keyProps, tags: _tags, notes: _notes, ...others } = shown;
  if (isShort(others)) return others;
  const cut = Object.entries(others).map(([name, value]) => [name, firstOf(value)]);
  return Object.fromEntries(cut);
}

/** The first of many entries of a field, with their number. */
function firstOf(value: unknown): unknown {
  const entries = isJsonObject(value) ? Object.keys(value) : value;
  if (!Array.isArray(entries) || entries.length <= mostShown) return value;
  return { first: entries.slice(0, mostShown), count: entries.length };
}

/** Whether a thing is there; of some types that is not known, and it is taken to be. */
export function isThere(tx: Tables, { type, id }: ResourceRef): boolean {
  switch (type) {
    case 'user':
      return tx.users.byId(id) !== undefined;
    case 'apikey':
      return tx.apiKeys.byId(id) !== undefined;
    case 'managed-key':
      return tx.managedKeys.byId(id) !== undefined;
    case 'key':
      return tx.ringKeys.isThere(id);
    default:
      return true;
  }
}

function isShort(fields: JsonObject): boolean {
  return JSON.stringify(fields).length <= most;
}

/**
 * The names and ids by which a rule may mean a thing; a User's e-mail address, too, and of a managed key its aliases,
 * its path, its id for clients of AWS and its names for those of KMIP.
 */
export function namesOf(tx: Tables, object: ResourceRef | null | undefined): string[] {
  if (!object) return [];
  const { type, id, name } = object;
  const own = name === undefined ? [id] : [id, name];
  if (type === 'user') return [...own, tx.users.byId(id)?.email ?? ''];
  const key = type === 'managed-key' ? tx.managedKeys.byId(id) : undefined;
  if (!key) return own;
  return [...own, awsIdOf(key), key.path ?? '', ...tx.managedKeys.aliases(id), ...tx.kmipObjects.names(id)];
}

type Touched = Parameters<Context['touches']>[0];

/** Acts on further things, as rules look at them. */
export function furtherOf(tx: Tables, further: readonly Touched[]): FurtherAct[] {
  return further.map(({ actions, ring, object, objects = [], lost = [] }) => ({
    actions,
    objects: [
      ...new Set([
        ...(ring === undefined ? [] : [ring]),
        ...lost,
        ...[object, ...objects].flatMap((each) => namesOf(tx, each)),
      ]),
    ],
    ...(ring !== undefined && { ring }),
    ...(lost.length > 0 && { renamed: { from: lost, to: namesOf(tx, object) } }),
    ...(object && { object }),
  }));
}

function fieldsOf(tx: Tables, { type, id }: ResourceRef): JsonObject | undefined {
  switch (type) {
    case 'user': {
      const user = tx.users.byId(id);
      if (!user) return undefined;
      const { username, email, displayName, flagsText, props } = user;
      return { username, email, displayName, flags: JSON.parse(flagsText), props };
    }
    case 'apikey':
      return apiKeyFields(tx, id);
    case 'account': {
      const account = tx.accounts.byId(id);
      return account && { uid: account.uid, notes: account.notes, props: account.props };
    }
    case 'approval-rule': {
      const rule = tx.approvalRules.list().find((each) => each.id === id);
      return rule && { name: rule.name, ...withNames(tx, rule) };
    }
    case 'keyring':
    case 'asym-keyring':
      return ringFields(tx.rings.byId(type === 'keyring' ? 'ks' : 'asym', id));
    case 'managed-key':
      return managedKeyFields(tx, id);
    default:
      return undefined;
  }
}

function apiKeyFields(tx: Tables, id: string): JsonObject | undefined {
  const key = tx.apiKeys.byId(id);
  if (!key) return undefined;
  const { name, active, expiresAt = null, addresses: allowedAddresses, accountId, flagsText, props, userId } = key;
  const owner = userId === undefined ? null : userNamed(tx, userId);
  const proofs = tx.proofs
    .ofKey(id)
    .map((proof) => ({ id: proof.id, kind: proof.kind, name: proof.name, active: proof.active }));
  const fields = { name, active, expiresAt, allowedAddresses, accountId, owner, hasSecret: key.hasSecret, proofs };
  return { ...fields, flags: JSON.parse(flagsText), props };
}

function ringFields(ring: Ring | undefined): JsonObject | undefined {
  if (!ring) return undefined;
  const { displayName: name, activeKey, kem, pair, keyProps, maxEncryptCount, rotateAfter = null, props } = ring;
  return {
    name,
    activeKey,
    kem,
    pair,
    maxEncryptCount,
    rotateAfter,
    offlineDecrypt: ring.offlineDecrypt,
    keyProps,
    props,
  };
}

function managedKeyFields(tx: Tables, id: string): JsonObject | undefined {
  const key = tx.managedKeys.byId(id);
  if (!key) return undefined;
  const { name, type, uses, state, exportable, deletionAllowed, latestVersion, minDecryptVersion } = key;
  const { minEncryptVersion, rotateAfter = null, activateAt = null, deactivateAt = null, tags, props } = key;
  const newest = tx.keyVersions.between(id, latestVersion, Math.max(1, latestVersion - mostShown + 1));
  return {
    ...{ name, aliases: tx.managedKeys.aliases(id), type, uses, state, exportable, deletionAllowed },
    ...{ latestVersion, minDecryptVersion, minEncryptVersion, rotateAfter, activateAt, deactivateAt },
    versions: Object.fromEntries(newest.map((each) => [String(each.version), each.state])),
    ...{ tags, props },
  };
}

/** The terms of a rule, with the names that people know its users by. */
function withNames(tx: Tables, rule: ApprovalRule): JsonObject {
  const named = (ids: readonly string[]) => ids.map((id) => userNamed(tx, id));
  const { approvers } = rule;
  return {
    ...termsTold(rule),
    approvers: 'users' in approvers ? { users: named(approvers.users) } : approvers,
    breakers: named(rule.breakers),
  };
}

/**
 * The Users for whom a changed rule would stand from then on, those first whose accounts who asks could have got into
 * (`reached`). To be called before the change; undefined for other acts.
 */
export function shownVouched(tx: Tables, requester: string, { object, objects = [] }: ActivityDetails) {
  if (object?.type !== 'approval-rule' || objects.length === 0) return undefined;
  const vouched = tx.approvalRules.list().find(({ id }) => id === object.id)?.vouched ?? {};
  const asking = askersOf(tx, requester, { vouched });
  const shown = objects.map(({ id, name = '' }) => {
    const could = behind(tx, id, (each) => vouched[each] ?? 0);
    return { id, name, reached: !asking || !could || [...asking].some((each) => could.has(each)) };
  });
  return [...shown.filter(({ reached }) => reached), ...shown.filter(({ reached }) => !reached)].slice(0, mostNamed);
}
