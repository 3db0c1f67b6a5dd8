// Values that the fields of attributes and key blocks can have: types, enumerations, masks and numbers. Each is checked
// where a client gives it, so that whatever is stored can be read, worked with and shown later.
import { isCustom, ruleNamed } from './attribute-rules.ts';
import { Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import { type Item, type ItemType, one, type Structure } from './ttlv.ts';

interface FieldRule {
  readonly type: ItemType;
  /** Numbers; none are below 0. Vendors' own enumerations from 80000000 on are allowed beside them. */
  readonly from?: number;
  readonly to?: number;
}

const numbered = (to: number, from = 1): FieldRule => ({ type: 'enumeration', from, to });
const whole: FieldRule = { type: 'integer', from: 0 };
const string: FieldRule = { type: 'text' };

/** All uses of the versions up to 2.1. */
const knownUses = 0xff_ffff;

/** Enumerations go to the last value of any version. */
const fieldRules: ReadonlyMap<number, FieldRule> = new Map([
  [tags.applicationData, string],
  [tags.applicationNamespace, string],
  [tags.nameValue, string],
  [tags.linkedObjectIdentifier, string],
  [tags.alternativeNameValue, string],
  [tags.revocationMessage, string],
  [tags.uniqueIdentifier, string],
  [tags.nameType, numbered(2)],
  [tags.linkType, numbered(0x10d, 0x101)],
  [tags.alternativeNameType, numbered(7)],
  [tags.revocationReasonCode, numbered(7)],
  [tags.certificateType, numbered(2)],
  [tags.secretDataType, numbered(2)],
  [tags.opaqueDataType, { type: 'enumeration' }],
  [tags.keyFormatType, numbered(0x16)],
  [tags.keyCompressionType, numbered(4)],
  [tags.cryptographicAlgorithm, numbered(0x38)],
  [tags.cryptographicLength, whole],
  [tags.cryptographicUsageMask, { type: 'integer', from: 0, to: knownUses }],
  [tags.blockCipherMode, numbered(0x12)],
  [tags.paddingMethod, numbered(0x0a)],
  [tags.hashingAlgorithm, numbered(0x11)],
  [tags.maskGeneratorHashingAlgorithm, numbered(0x11)],
  [tags.keyRoleType, numbered(0x18)],
  [tags.digitalSignatureAlgorithm, numbered(0x13)],
  [tags.maskGenerator, numbered(1)],
  [tags.recommendedCurve, numbered(0x46)],
  [tags.usageLimitsUnit, numbered(2)],
  [tags.wrappingMethod, numbered(5)],
  [tags.encodingOption, numbered(2)],
  [tags.usageLimitsTotal, { type: 'long', from: 0 }],
  [tags.usageLimitsCount, { type: 'long', from: 0 }],
  [tags.qlength, whole],
  [tags.ivLength, whole],
  [tags.tagLength, whole],
  [tags.fixedFieldLength, whole],
  [tags.counterLength, whole],
  [tags.initialCounterValue, whole],
  [tags.invocationFieldLength, whole],
  [tags.saltLength, whole],
  [tags.trailerField, whole],
  [tags.randomIv, { type: 'boolean' }],
  [tags.pSource, { type: 'bytes' }],
]);

/** Fields without which an attribute says nothing. */
const neededFields: Readonly<Record<string, readonly number[]>> = {
  Name: [tags.nameValue, tags.nameType],
  Link: [tags.linkType, tags.linkedObjectIdentifier],
  'Alternative Name': [tags.alternativeNameValue, tags.alternativeNameType],
  'Application Specific Information': [tags.applicationNamespace],
  'Usage Limits': [tags.usageLimitsTotal, tags.usageLimitsUnit],
};

/** The last second of the year 9999, and its last microsecond. */
const latest = { date: 253_402_300_799n, 'extended-date': 253_402_300_799_999_999n } as const;

/** Throws `Refusal` for a value that the attribute cannot have, whole or in one of its fields. */
export function checkFields(name: string, value: Item): void {
  checkDates(name, value);
  if (isCustom(name)) checkCustom(value);
  else if (value.type === 'structure') checkStructure(name, value);
  else {
    const rule = fieldRules.get(ruleNamed(name)?.tag ?? 0);
    if (rule) checkOne(name, value, rule);
  }
}

function checkStructure(name: string, value: Structure): void {
  for (const tag of neededFields[name] ?? []) {
    if (!one(value, tag)) throw new Refusal(reasons.invalidField, `${name} lacks one of its fields`);
  }
  checkKnown(value);
}

/** The same for the fields of an object and of its key block. */
export function checkKnown(from: Structure): void {
  for (const field of from.value) {
    const rule = fieldRules.get(field.tag);
    if (rule) checkOne(`the field ${field.tag.toString(16)}`, field, rule);
    if (rule) one(from, field.tag);
    if (field.type === 'structure') checkKnown(field);
  }
}

function checkOne(name: string, { type, value }: Item, rule: FieldRule): void {
  if (type !== rule.type) {
    throw new Refusal(reasons.invalidField, `${name} has the type ${rule.type}, not ${type}`);
  }
  if (typeof value !== 'number' && typeof value !== 'bigint') return;
  const { from = 0, to = Number.POSITIVE_INFINITY } = rule;
  const isVendors = type === 'enumeration' && value >= 0x8000_0000;
  if (!isVendors && (value < from || value > to)) {
    throw new Refusal(reasons.invalidField, `${name} cannot be ${value}`);
  }
}

function checkCustom(value: Item): void {
  if (value.type === 'structure' && value.value.some(({ type }) => type === 'structure')) {
    throw new Refusal(reasons.invalidField, 'a structure in a structure is no custom attribute');
  }
}

/** Throws `Refusal` for a date that no clock has. */
function checkDates(name: string, item: Item): void {
  if (item.type === 'structure') for (const each of item.value) checkDates(name, each);
  if (item.type !== 'date' && item.type !== 'extended-date') return;
  if (item.value < 0n || item.value > latest[item.type]) throw new Refusal(reasons.invalidField, `${name} is no date`);
}
