// The table of attributes that are kept: which versions have them, who changes them, and how many an object may have.
import { Refusal, reasons } from './reasons.ts';
import { tags } from './tags.ts';
import type { ItemType } from './ttlv.ts';
import type { Version } from './versions.ts';

/**
 * Changes of an attribute: by the server alone; by a client where the object is made; by a client at any time, which
 * may (`free`) or may not (`kept`) take it away again.
 */
type Changes = 'server' | 'once' | 'kept' | 'free';

interface AttributeRule {
  readonly name: string;
  readonly tag: number;
  readonly type: ItemType;
  readonly since: Version;
  /** The first version that has it no more. */
  readonly until?: Version;
  readonly changes: Changes;
  /** Whether an object may have several. */
  readonly isMany?: boolean;
}

export const attributeRules: readonly AttributeRule[] = [
  { name: 'Unique Identifier', tag: tags.uniqueIdentifier, type: 'text', since: 10, changes: 'server' },
  { name: 'Name', tag: tags.name, type: 'structure', since: 10, changes: 'free', isMany: true },
  { name: 'Object Type', tag: tags.objectType, type: 'enumeration', since: 10, changes: 'server' },
  {
    name: 'Cryptographic Algorithm',
    tag: tags.cryptographicAlgorithm,
    type: 'enumeration',
    since: 10,
    changes: 'once',
  },
  { name: 'Cryptographic Length', tag: tags.cryptographicLength, type: 'integer', since: 10, changes: 'once' },
  {
    ...{ name: 'Cryptographic Parameters', tag: tags.cryptographicParameters, type: 'structure' },
    ...{ since: 10, changes: 'free', isMany: true },
  },
  {
    ...{ name: 'Cryptographic Domain Parameters', tag: tags.cryptographicDomainParameters, type: 'structure' },
    ...{ since: 10, changes: 'once' },
  },
  { name: 'Certificate Type', tag: tags.certificateType, type: 'enumeration', since: 10, changes: 'server' },
  { name: 'Certificate Length', tag: tags.certificateLength, type: 'integer', since: 11, changes: 'server' },
  { name: 'Digest', tag: tags.digest, type: 'structure', since: 10, changes: 'server', isMany: true },
  { name: 'Operation Policy Name', tag: tags.operationPolicyName, type: 'text', since: 10, until: 20, changes: 'kept' },
  { name: 'Cryptographic Usage Mask', tag: tags.cryptographicUsageMask, type: 'integer', since: 10, changes: 'once' },
  { name: 'Lease Time', tag: tags.leaseTime, type: 'interval', since: 10, changes: 'server' },
  { name: 'Usage Limits', tag: tags.usageLimits, type: 'structure', since: 10, changes: 'free' },
  { name: 'State', tag: tags.state, type: 'enumeration', since: 10, changes: 'server' },
  { name: 'Initial Date', tag: tags.initialDate, type: 'date', since: 10, changes: 'server' },
  { name: 'Activation Date', tag: tags.activationDate, type: 'date', since: 10, changes: 'kept' },
  { name: 'Process Start Date', tag: tags.processStartDate, type: 'date', since: 10, changes: 'kept' },
  { name: 'Protect Stop Date', tag: tags.protectStopDate, type: 'date', since: 10, changes: 'kept' },
  { name: 'Deactivation Date', tag: tags.deactivationDate, type: 'date', since: 10, changes: 'kept' },
  { name: 'Destroy Date', tag: tags.destroyDate, type: 'date', since: 10, changes: 'server' },
  {
    ...{ name: 'Compromise Occurrence Date', tag: tags.compromiseOccurrenceDate, type: 'date' },
    ...{ since: 10, changes: 'server' },
  },
  { name: 'Compromise Date', tag: tags.compromiseDate, type: 'date', since: 10, changes: 'server' },
  { name: 'Revocation Reason', tag: tags.revocationReason, type: 'structure', since: 10, changes: 'server' },
  { name: 'Archive Date', tag: tags.archiveDate, type: 'date', since: 10, changes: 'server' },
  { name: 'Object Group', tag: tags.objectGroup, type: 'text', since: 10, changes: 'free', isMany: true },
  { name: 'Fresh', tag: tags.fresh, type: 'boolean', since: 11, changes: 'once' },
  { name: 'Link', tag: tags.link, type: 'structure', since: 10, changes: 'free', isMany: true },
  {
    ...{ name: 'Application Specific Information', tag: tags.applicationSpecificInformation, type: 'structure' },
    ...{ since: 10, changes: 'free', isMany: true },
  },
  { name: 'Contact Information', tag: tags.contactInformation, type: 'text', since: 10, changes: 'free' },
  { name: 'Last Change Date', tag: tags.lastChangeDate, type: 'date', since: 10, changes: 'server' },
  {
    ...{ name: 'Alternative Name', tag: tags.alternativeName, type: 'structure' },
    ...{ since: 12, changes: 'free', isMany: true },
  },
  { name: 'Original Creation Date', tag: tags.originalCreationDate, type: 'date', since: 12, changes: 'once' },
  { name: 'PKCS#12 Friendly Name', tag: tags.pkcs12FriendlyName, type: 'text', since: 14, changes: 'free' },
  { name: 'Description', tag: tags.description, type: 'text', since: 14, changes: 'free' },
  { name: 'Comment', tag: tags.comment, type: 'text', since: 14, changes: 'free' },
  { name: 'Sensitive', tag: tags.sensitive, type: 'boolean', since: 14, changes: 'kept' },
  { name: 'Always Sensitive', tag: tags.alwaysSensitive, type: 'boolean', since: 14, changes: 'server' },
  { name: 'Extractable', tag: tags.extractable, type: 'boolean', since: 14, changes: 'kept' },
  { name: 'Never Extractable', tag: tags.neverExtractable, type: 'boolean', since: 14, changes: 'server' },
];

const byName = new Map(attributeRules.map((rule) => [rule.name, rule]));
const byTag = new Map(attributeRules.map((rule) => [rule.tag, rule]));

/** Attributes of the client's own (`x-`) and of others' servers (`y-`). */
export function isCustom(name: string): boolean {
  return /^[xy]-/.test(name);
}

export function ruleNamed(name: string): AttributeRule | undefined {
  return byName.get(name);
}

export function ruleTagged(tag: number): AttributeRule | undefined {
  return byTag.get(tag);
}

/** The rule of an attribute that the version has. Throws `Refusal`. */
export function ruleOf(name: string, version: Version): AttributeRule | undefined {
  const rule = byName.get(name);
  if (rule ? isOfVersion(rule, version) : isCustom(name)) return rule;
  throw new Refusal(reasons.invalidField, 'the attribute is unknown, or of another version');
}

/** Whether clients of the version know the attribute. */
export function isKnownTo(name: string, version: Version): boolean {
  const rule = byName.get(name);
  return rule ? isOfVersion(rule, version) : isCustom(name);
}

function isOfVersion({ since, until = Number.POSITIVE_INFINITY }: AttributeRule, version: Version): boolean {
  return version >= since && version < until;
}
