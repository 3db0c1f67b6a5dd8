// Approvals of KMIP's operations, an item of a batch at a time: the act as rules look at it, and the refusal of one
// that waits.
import { askFor, type Beforehand, decideAct, NeedsWords } from '../../core/approval-decision.ts';
import { furtherOf, namesOf } from '../../core/approval-objects.ts';
import { hidden } from '../../core/approval-statement.ts';
import { type KmipRight, ownKmipFlags } from '../../core/kmip-objects.ts';
import { toBase64 } from '../../crypto/bytes.ts';
import { waitError } from '../../http/approval-stage.ts';
import type { BatchContext } from '../../http/batch-way.ts';
import { isKeyUse } from '../../model/approval-rules.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Operation, Work } from './operation.ts';
import { tags } from './tags.ts';
import { encodeItem, type Item, type Structure } from './ttlv.ts';

/** Operations that make objects, whose names and ids are new each time. */
const making: ReadonlySet<string> = new Set(['key.create', 'key.import']);

/** Lets an item that was just done stand. Throws `NeedsWords`. */
export function approveItem(work: Work, { action, name }: Operation, payload: Structure, before: Beforehand): void {
  const { ctx, subject } = work;
  const { tx, tenant, deed, further } = ctx;
  const isMade = making.has(action);
  const ring = isMade || subject === '' ? undefined : subject;
  const object = (!isMade && deed?.object) || null;
  const own = isMade ? 'kmip.create' : ownKmipFlags[action.slice('key.'.length) as KmipRight]; // absent for others
  const approval = decideAct(
    ctx,
    {
      actions: own === undefined ? [action] : [action, own],
      ring,
      ringname: subject,
      objects: [...new Set([subject, ...namesOf(tx, deed?.object)])].filter(Boolean),
      further: furtherOf(tx, further),
      itself: [],
      recorded: action,
      operation: `kmip:${name}`,
      object,
      parameters: {},
      body: { payload: hidden(tenant.keys, toBase64(encodeItem(payload))), fields: fieldsOf(payload) },
      isUse: isKeyUse(action),
      deed,
      after: () => undefined,
      reason: undefined,
      breaking: () => undefined,
    },
    before,
  );
  if (approval) ctx.deed = { ...deed, approval };
}

const nameOfTag: ReadonlyMap<number, string> = new Map(Object.entries(tags).map(([name, tag]) => [tag, name]));

/** The fields of a payload for people, without bytes and numbers of keys; several of one name are a list. */
function fieldsOf({ value }: Structure): JsonObject {
  const fields: Record<string, unknown> = {};
  for (const item of value) {
    const name = nameOfTag.get(item.tag) ?? item.tag.toString(16);
    const told = toldOf(item);
    const before = fields[name];
    if (told === undefined) continue;
    fields[name] = before === undefined ? told : Array.isArray(before) ? [...before, told] : [before, told];
  }
  return fields;
}

function toldOf(item: Item): unknown {
  if (item.type === 'structure') return item.tag === tags.keyMaterial ? undefined : fieldsOf(item);
  if (item.type === 'bytes' || item.type === 'big') return undefined;
  return typeof item.value === 'bigint' ? String(item.value) : item.value;
}

/** The refusal of an item that was taken back since it waits; any other error as it is. */
export function waitFor(ctx: BatchContext, thrown: unknown): unknown {
  if (!(thrown instanceof NeedsWords)) return thrown;
  ctx.needs = thrown;
  try {
    ctx.waits = askFor(ctx, thrown, ctx.held);
  } catch (limit) {
    return limit;
  }
  const { object } = ctx.deed ?? {};
  ctx.deed = { ...(object && { object }), approval: { id: ctx.waits.id } };
  return waitError(ctx.waits);
}
