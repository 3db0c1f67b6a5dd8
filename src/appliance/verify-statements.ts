// The statement of a request in an export: what approvers signed. One reading of its text for every verifier.
import { toBase64Url, utf8 } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import { isJsonObject, type JsonObject, jsonOf } from '../model/json.ts';

/** A rule as it was when it was asked. */
export interface StatedRule {
  readonly id: string;
  readonly count: number;
  readonly window: 'once' | number;
  readonly expires: number | null;
}

/** An act on a further thing. */
interface StatedFurther {
  readonly action: string;
  /** An id. */
  readonly object: string | null;
}

export interface Statement {
  readonly tenant: string;
  readonly requester: string;
  /** Action and ring of the act's own record. */
  readonly recorded: string;
  readonly ring: string;
  readonly object: { readonly id: string; readonly type: string } | undefined;
  readonly further: readonly StatedFurther[];
  readonly rules: readonly StatedRule[];
  /** When it was asked. */
  readonly at: number;
}

/** The statement, if it fits its digest and the request's id; undefined if it does not, or is none. */
export function readStatement({ id, statement, digest }: JsonObject): Statement | undefined {
  if (!isWord(id) || typeof statement !== 'string' || !statement.isWellFormed()) return undefined;
  if (!isWord(digest) || toBase64Url(sha256(utf8(statement))) !== digest) return undefined;
  const { v, request, requester, tenant, recorded, ring, object, further, rules, at }: JsonObject =
    objectIn(statement) ?? {};
  if (v !== 'kms/approval/1' || request !== id || typeof requester !== 'string') return undefined;
  if (!isWord(tenant) || !isWord(recorded) || typeof ring !== 'string' || typeof at !== 'number') return undefined;
  if (object !== null && !isThing(object)) return undefined;
  if (!areFurther(further)) return undefined;
  if (!Array.isArray(rules) || rules.length === 0 || !rules.every(isStatedRule)) return undefined;
  if (new Set(rules.map((rule) => rule.id)).size < rules.length) return undefined;
  return { tenant, requester, recorded, ring, object: object ?? undefined, further, rules, at };
}

/** A name or an id as the appliance makes them. */
export function isWord(value: unknown): value is string {
  return typeof value === 'string' && /^[!-~]{1,256}$/.test(value);
}

export function isCount(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1;
}

export function isWindow(value: unknown): value is 'once' | number {
  return value === 'once' || (typeof value === 'number' && value > 0);
}

/** Maximum of brackets in a statement: deeper texts are read differently by other parsers. */
const mostBrackets = 500;

function objectIn(statement: string): JsonObject | undefined {
  if ((statement.match(/[[{]/g) ?? []).length > mostBrackets) return undefined;
  const value = jsonOf(statement);
  return isJsonObject(value) ? value : undefined;
}

function isThing(value: unknown): value is NonNullable<Statement['object']> {
  return isJsonObject(value) && isWord(value.id) && isWord(value.type);
}

/** Acts on further things, in a statement or the record of an act. */
function areFurther(value: unknown): value is readonly StatedFurther[] {
  return Array.isArray(value) && value.every(isFurther);
}

function isFurther(value: unknown): value is StatedFurther {
  if (!isJsonObject(value)) return false;
  return typeof value.action === 'string' && (value.object === null || isWord(value.object));
}

/** Whether an act's record names the same further things, in the same order; a record of none has no such field. */
export function isSameFurther({ further }: Statement, done: unknown = []): boolean {
  return (
    areFurther(done) &&
    done.length === further.length &&
    done.every(({ action, object }, at) => action === further[at]?.action && object === further[at]?.object)
  );
}

function isStatedRule(value: unknown): value is StatedRule {
  if (!isJsonObject(value)) return false;
  const { id, count, window, expires } = value;
  return isWord(id) && isCount(count) && isWindow(window) && (expires === null || typeof expires === 'number');
}
