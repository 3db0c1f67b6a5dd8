// The act as approvers see it, without what is confidential in it, and the canonical
// statement whose digest a passkey signs (docs/approvals.md).

import { concatBytes, toBase64Url, utf8 } from '../crypto/bytes.ts';
import { canonicalJson } from '../crypto/canonical-json.ts';
import { hmacSha256, sha256 } from '../crypto/hash.ts';
import { type FurtherAct, furtherTold, type Verdict, wordText } from '../model/approval-rules.ts';
import { isConfidential } from '../model/confidential.ts';
import { isJsonObject, type JsonObject } from '../model/json.ts';
import type { TenantKeys } from '../seal/tenant-keys.ts';

/** Characters of a text that is shown. */
const longestShown = 256;
/** Characters of the whole, in JSON. */
const mostShown = 16_384;
const codeLength = 16;
/** Characters of a code in JSON. */
const lengthOfCode = 35;

/**
 * Shows fields, with a code for what is confidential or long. Equal values have equal codes, in one tenant. If all of
 * it is too long, the longest fields get a code, those first that decide nothing: no field hides
 * another.
 */
export function shownFields(keys: TenantKeys, fields: JsonObject): JsonObject {
  const shown = Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, shownField(keys, name, value)]),
  );
  const lengths = Object.keys(shown).map((name) => ({ name, length: lengthOf(shown[name]) }));
  let length = lengthOf(shown);
  const inOrder = lengths.sort((a, b) => rankOf(a.name) - rankOf(b.name) || b.length - a.length);
  for (const { name, length: own } of inOrder) {
    if (length <= mostShown) break;
    if (own <= lengthOfCode) continue;
    shown[name] = hidden(keys, fields[name]);
    length += lengthOfCode - own;
  }
  return length <= mostShown ? shown : { all: hidden(keys, fields) };
}

/** Fields that people write for themselves are hidden first, those that say who may do what last. */
function rankOf(name: string): number {
  if (name === 'props' || name === 'attributes' || name === 'tags' || name === 'description') return 0;
  return /^(?:flags|actions|objects|approvers|breakers|count|window)$|id$|email|name$/i.test(name) ? 2 : 1;
}

function lengthOf(value: unknown): number {
  return value === undefined ? 0 : canonicalJson(value).length;
}

function shownValue(keys: TenantKeys, value: unknown): unknown {
  if (typeof value === 'string') return value.length > longestShown ? hidden(keys, value) : value;
  if (Array.isArray(value)) return value.map((item) => shownValue(keys, item));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, shownField(keys, name, field)]));
}

function shownField(keys: TenantKeys, name: string, field: unknown): unknown {
  if (name === 'config' && isJsonObject(field) && isJsonObject(field.key)) {
    // Settings of the keys of a ring have the name of a key.
    const { key, ...others } = field;
    return { ...Object(shownValue(keys, others)), key: shownValue(keys, key) };
  }
  const isHidden = isConfidential(name) && field !== undefined && field !== null && typeof field !== 'boolean';
  return isHidden ? hidden(keys, field) : shownValue(keys, field);
}

/** A code instead of a value: made with a key of the tenant, so that it cannot be guessed at. */
export function hidden(keys: TenantKeys, value: unknown): { readonly hidden: string } {
  const label = utf8('kms/approval/hidden/v1 ');
  const mac = hmacSha256(keys.key('approval'))(concatBytes(label, utf8(canonicalJson(value))));
  return { hidden: toBase64Url(mac.subarray(0, codeLength)) };
}

/** SHA-256 of a text, or of the canonical text of a value; base64url. */
export function digestOf(value: string | JsonObject): string {
  return toBase64Url(sha256(utf8(typeof value === 'string' ? value : canonicalJson(value))));
}

/** The challenge that a passkey signs for a word about the request with this digest: another for each verdict. */
export function signedChallenge(verdict: Verdict, digest: string): string {
  return verdict === 'approve' ? digest : digestOf(wordText(verdict, digest));
}

interface StatedRule {
  readonly id: string;
  readonly count: number;
  readonly window: 'once' | number;
  readonly expires: number | null;
}

interface StatedFurther {
  readonly action: string;
  /** The id of the thing, if it was there. */
  readonly object: string | null;
}

/** Acts on further things, as a statement and the record of the act name them. */
export function statedFurther(further: readonly FurtherAct[] | undefined): StatedFurther[] {
  return furtherTold(further).map(({ action, object }) => ({ action, object: object?.id ?? null }));
}

interface Stated {
  readonly tenant: string;
  readonly request: string;
  readonly requester: string;
  readonly action: string;
  readonly recorded: string;
  readonly ring: string;
  readonly operation: string;
  readonly object: object | null;
  readonly further: readonly StatedFurther[];
  readonly parameters: JsonObject;
  readonly body: JsonObject | null;
  readonly rules: readonly StatedRule[];
  readonly at: number;
}

export function statementOf({ parameters, body, ...stated }: Stated): string {
  return canonicalJson({
    v: 'kms/approval/1',
    ...stated,
    parameters: digestOf(parameters),
    body: body && digestOf(body),
  });
}
