// Operations that change attributes: Add, Modify, Delete and Set Attribute.

import { isAllowed } from '../../core/authorization.ts';
import { type KmipObject, needKmipRight, setKmipFields } from '../../core/kmip-objects.ts';
import { checkGrowth } from './attribute-limits.ts';
import { ruleOf } from './attribute-rules.ts';
import { type Attribute, type AttributeSet, readOne, readReference, timeIn, writeAttribute } from './attributes.ts';
import { checkDateOrder } from './date-order.ts';
import { allAttributes, attributesOf, described, hasState, storeAttributes, typeOf } from './objects.ts';
import { idAnswer, type Operation, type Work } from './operation.ts';
import { denied, isNameTaken, laterReasons, Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import { boolean, fieldOf, type Item, isSameValue, one, type Structure, structure, structureIn, text } from './ttlv.ts';
import { isBegun, newLimits } from './usage-limits.ts';

/** Throws `Refusal` for an attribute that clients do not change, or not any more. */
function needChangeable(work: Work, object: KmipObject, { name, value }: Attribute): void {
  const rule = ruleOf(name, work.version);
  if (rule?.changes === 'server' || rule?.changes === 'once') {
    throw denied('the attribute is not changed by clients', laterReasons.readOnlyAttribute);
  }
  const isBegun = hasState(typeOf(object)) && object.state !== 'pre-active';
  const isOver = isBegun && object.state !== 'active';
  if ((name === 'Activation Date' && isBegun) || (name === 'Deactivation Date' && isOver)) {
    throw denied('the date has had its effect');
  }
  needOpen(work, object, name);
  if (name === 'Sensitive' && value.value === false && attributesOf(object).first(name)?.value === true) {
    const subject = { kind: 'named', name: object.key.name } as const;
    if (!isAllowed(work.ctx.caller, 'key.config', subject)) throw denied('a sensitive key stays so');
  }
}

const once: readonly string[] = ['Process Start Date', 'Protect Stop Date'];

/** Throws `Refusal` for a date of use that has come, and for limits of which a part was taken. */
function needOpen(work: Work, object: KmipObject, name: string): void {
  const set = attributesOf(object);
  const time = once.includes(name) ? timeIn(set, name) : undefined;
  if (time !== undefined && time <= work.now) throw denied('the date has had its effect');
  if (name === 'Usage Limits' && isBegun(set.first(name))) throw denied('a part of the limits was taken already');
}

/** The attribute as it is stored. */
function settled(attribute: Attribute): Attribute {
  return attribute.name === 'Usage Limits' ? { ...attribute, value: newLimits(attribute.value) } : attribute;
}

/** Stores a value of an attribute, of which some are the managed key's own. */
function put(work: Work, object: KmipObject, { name, value }: Attribute, set: AttributeSet): void {
  if (value.type === 'date') checkDateOrder(allAttributes(object).withOne(name, value), [name]);
  if (value.type === 'date' && (name === 'Activation Date' || name === 'Deactivation Date')) {
    // Dates move the state, which takes a flag of its own.
    needKmipRight(work.ctx, object, 'state');
    const time = Number(value.value) * 1000;
    setKmipFields(work.ctx, object.key.id, name === 'Activation Date' ? { activateAt: time } : { deactivateAt: time });
    return;
  }
  if (name === 'Extractable' && value.type === 'boolean') {
    setKmipFields(work.ctx, object.key.id, { exportable: value.value });
    return;
  }
  checkGrowth(attributesOf(object), set);
  const isLess = name === 'Sensitive' && value.value === false;
  const full = isLess ? set.withOne('Always Sensitive', boolean(tags.attributeValue, false)) : set;
  try {
    storeAttributes(work, object, full);
  } catch (error) {
    if (!isNameTaken(error)) throw error;
    throw new Refusal(reasons.illegalOperation, error.message, laterReasons.nonUniqueName);
  }
}

function answer(work: Work, object: KmipObject, attribute: Attribute): Structure {
  return structure(
    tags.responsePayload,
    text(tags.uniqueIdentifier, object.id),
    work.isSecond ? undefined : writeAttribute(work.version, attribute),
  );
}

export const addAttribute: Operation = {
  code: 0x0d,
  name: 'Add Attribute',
  since: 10,
  action: 'key.config',
  run(work, payload) {
    const attribute = settled(readOne(work.version, payload, tags.newAttribute));
    const object = described(work, work.find(payload, 'config'));
    const { name, index = 0, value } = attribute;
    if (index > 0) throw new Refusal(reasons.invalidField, 'the server gives the index');
    needChangeable(work, object, attribute);
    const rule = ruleOf(name, work.version);
    const set = attributesOf(object);
    const there = allAttributes(object).get(name);
    // It has no effect here, and some clients give it again.
    const isRepeatable = name === 'Operation Policy Name';
    const isSingle = rule !== undefined && rule.isMany !== true;
    if ((isSingle && there.size > 0 && !isRepeatable) || set.has(name, value)) {
      if (!isRepeatable) {
        throw new Refusal(
          reasons.illegalOperation,
          'the attribute has this value, or one already',
          laterReasons.singleValued,
        );
      }
    }
    const after = isSingle ? set.withOne(name, value) : set.withMore(name, value);
    put(work, object, attribute, after);
    const at = isSingle ? 0 : ([...after.get(name).keys()].at(-1) ?? 0);
    return answer(work, object, { name, index: at, value });
  },
};

/** The index of the value that a payload of 2.x has as Current Attribute; undefined without that. */
function currentIndex({ isSecond, version }: Work, payload: Structure, name: string, set: AttributeSet) {
  if (!isSecond || !one(payload, tags.currentAttribute)) return undefined;
  const current = readOne(version, payload, tags.currentAttribute);
  if (current.name !== name) throw new Refusal(reasons.invalidField, 'the attribute and its current one differ');
  const found = [...set.get(name)].find(([, value]) => isSameValue(value, current.value));
  if (found) return found[0];
  throw new Refusal(reasons.itemNotFound, 'the attribute has no such value');
}

/** The index of the value to modify. In 2.x the only value needs no Current Attribute. Throws `Refusal`. */
function modifiedIndex(work: Work, payload: Structure, { name, index = 0 }: Attribute, set: AttributeSet): number {
  const there = set.get(name);
  const [only = index, more] = there.keys();
  const current = currentIndex(work, payload, name, set);
  if (work.isSecond && current === undefined && more !== undefined) {
    const problem = 'the attribute has several values: expected the current one as well';
    throw new Refusal(reasons.invalidField, problem, laterReasons.multiValued);
  }
  const found = work.isSecond ? (current ?? only) : index;
  if (there.has(found)) return found;
  throw new Refusal(there.size > 0 ? reasons.itemNotFound : reasons.invalidField, 'the attribute is not there');
}

export const modifyAttribute: Operation = {
  code: 0x0e,
  name: 'Modify Attribute',
  since: 10,
  action: 'key.config',
  run(work, payload) {
    const attribute = settled(readOne(work.version, payload, tags.newAttribute));
    const object = described(work, work.find(payload, 'config'));
    needChangeable(work, object, attribute);
    const { name, value } = attribute;
    const index = modifiedIndex(work, payload, attribute, allAttributes(object));
    const set = attributesOf(object);
    if ([...set.get(name)].some(([at, there]) => at !== index && isSameValue(there, value))) {
      throw new Refusal(reasons.illegalOperation, 'the attribute has this value already', laterReasons.singleValued);
    }
    put(work, object, attribute, set.with(name, new Map([...set.get(name), [index, value]])));
    return answer(work, object, { name, index, value });
  },
};

export const setAttribute: Operation = {
  code: 0x31,
  name: 'Set Attribute',
  since: 20,
  action: 'key.config',
  run(work, payload) {
    const attribute = settled(readOne(work.version, payload, tags.newAttribute));
    const object = described(work, work.find(payload, 'config'));
    needChangeable(work, object, attribute);
    if (ruleOf(attribute.name, work.version)?.isMany === true) {
      throw new Refusal(laterReasons.multiValued, 'the attribute has several values');
    }
    put(work, object, attribute, attributesOf(object).withOne(attribute.name, attribute.value));
    return idAnswer(object);
  },
};

/** The name of the attribute to delete. */
function deletedName(work: Work, payload: Structure): string {
  if (!work.isSecond) {
    const name = fieldOf(payload, tags.attributeName, 'text');
    if (name !== undefined) return name;
    throw new Refusal(reasons.missingData, 'the name of the attribute is missing');
  }
  const current = structureIn(payload, tags.currentAttribute);
  if (!current) return readReference(payload);
  const { name } = readOne(work.version, payload, tags.currentAttribute);
  if (one(payload, tags.attributeReference) && readReference(payload) !== name) {
    throw new Refusal(reasons.invalidField, 'the current attribute is not the one referred to');
  }
  return name;
}

/** The indexes of the values to delete: in 2.x all of them, unless a current one is named. */
function deletedIndexes(work: Work, payload: Structure, name: string, set: AttributeSet): readonly number[] {
  if (!work.isSecond) return [fieldOf(payload, tags.attributeIndex, 'integer') ?? 0];
  const current = currentIndex(work, payload, name, set);
  return current === undefined ? [...set.get(name).keys()] : [current];
}

export const deleteAttribute: Operation = {
  code: 0x0f,
  name: 'Delete Attribute',
  since: 10,
  action: 'key.config',
  run(work, payload) {
    const name = deletedName(work, payload);
    const rule = ruleOf(name, work.version);
    const object = described(work, work.find(payload, 'config'));
    if (rule && rule.changes !== 'free') {
      throw denied('the attribute is not deleted by clients', laterReasons.readOnlyAttribute);
    }
    needOpen(work, object, name);
    const set = attributesOf(object);
    const gone = deletedIndexes(work, payload, name, set);
    const [index = 0] = gone;
    const value: Item | undefined = set.get(name).get(index);
    if (!value) throw new Refusal(reasons.itemNotFound, 'the attribute is not there');
    const rest = [...set.get(name)].filter(([at]) => !gone.includes(at));
    storeAttributes(work, object, set.with(name, new Map(rest)));
    return answer(work, object, { name, index, value });
  },
};
