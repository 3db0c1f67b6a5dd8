// An activity record and its canonical line: the RFC 8785 JSON of the record, which the chain hashes, the log stores
// and an export shows.
import { canonicalJson } from '../../crypto/canonical-json.ts';
import type { ActivityInput, ActivityRecord } from '../port.ts';

/** A JSON string. A lone surrogate, which RFC 8785 refuses, becomes U+FFFD. */
function quoted(text: string): string {
  return plain.test(text) ? `"${text}"` : JSON.stringify(text.toWellFormed());
}

/** Characters of ids and names, none of which JSON escapes. */
const plain = /^[\w.*:-]*$/;

export function hasEntries(props: Readonly<Record<string, unknown>>): boolean {
  for (const key in props) if (Object.hasOwn(props, key)) return true;
  return false;
}

/** An address as it stands in a line, directly after the action. */
export function addressMember(address: string): string {
  return `"address":${quoted(address)},`;
}

/** The fields that many records share. */
export type Alike = Pick<ActivityInput, 'action' | 'keyid' | 'ringname' | 'status' | 'validAction' | 'address'>;

/** The parts of a canonical line before the time, between id and number, and after the number. */
export interface LineParts {
  readonly front: string;
  readonly middle: string;
  readonly back: string;
}

/** Props as they stand in a line, directly after the keyid. Throws `invalid` for values that JSON cannot represent. */
export function propsMember(props: ActivityInput['props']): string {
  return `"props":${canonicalJson(props)},`;
}

/** `inside` is the text between keyid and ringname. */
export function lineParts({ action, keyid, ringname, status, validAction, address }: Alike, inside = ''): LineParts {
  const from = address === undefined ? '' : addressMember(address);
  return {
    front: `{"action":${quoted(action)},${from}"createdAt":`,
    middle: `,"keyid":${quoted(keyid)},${inside}"ringname":${quoted(ringname)},"seq":`,
    back: `,"status":${status},"validAction":${validAction}}`,
  };
}

/**
 * The canonical line: keys in code-unit order, without `props` if empty, and without an absent `address` or `reporter`.
 * Throws `invalid` for props that JSON cannot represent.
 */
export function activityLine(input: ActivityInput, seq: number): string {
  const props = hasEntries(input.props) ? propsMember(input.props) : '';
  const reporter = input.reporter === undefined ? '' : `"reporter":${quoted(input.reporter)},`;
  const { front, middle, back } = lineParts(input, props + reporter);
  return `${front}${input.createdAt},"id":${quoted(input.id)}${middle}${seq}${back}`;
}

function isProps(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The record of a line; undefined if the text is no record. */
export function parseActivityLine(line: string): ActivityRecord | undefined {
  let value: Partial<ActivityRecord> | null;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { id, createdAt, keyid, action, ringname, validAction, status, seq } = value;
  const props = Object.hasOwn(value, 'props') ? value.props : {};
  const reporter = Object.hasOwn(value, 'reporter') ? value.reporter : undefined;
  const address = Object.hasOwn(value, 'address') ? value.address : undefined;
  if (
    typeof id !== 'string' ||
    typeof createdAt !== 'number' ||
    typeof keyid !== 'string' ||
    typeof action !== 'string' ||
    typeof ringname !== 'string' ||
    typeof validAction !== 'boolean' ||
    typeof status !== 'number' ||
    typeof seq !== 'number' ||
    !isProps(props) ||
    (reporter !== undefined && typeof reporter !== 'string') ||
    (address !== undefined && typeof address !== 'string')
  ) {
    return undefined;
  }
  const record = { seq, id, createdAt, keyid, action, ringname, validAction, status, props };
  return {
    ...record,
    ...(address !== undefined && { address }),
    ...(reporter !== undefined && { reporter }),
  };
}
