// Judges a history of several nodes by their log: whether it is linearizable, so that every answer is what a single
// appliance would have given that did one thing after the other, each between its request and its answer.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { ChainedActivity, Store } from '../../src/store/port.ts';
import type { NoteTables } from '../store/contract.ts';

export type Kind = 'encrypt' | 'switch' | 'make' | 'look';

/** Maximum number of rings. */
export const quota = 12;

/** A request and, once there is one, its answer. */
export interface Op {
  readonly number: number;
  readonly kind: Kind;
  /** The key, or the ring to make. */
  readonly name: string;
  /** For a switch: the new state. */
  readonly on?: number;
  /** Times of the request and its answer, by one clock for all nodes. */
  readonly from: number;
  until?: number;
  /** The status; for a look, the value seen. Undefined if there was no answer, or an error. */
  answer?: number;
  /** The answer said that nothing was done. */
  refused?: boolean;
  /** Answered by a database that has since lost its last commits. */
  mayBeLost?: boolean;
}

/** A record: the number of its request, and its status. */
export interface Entry {
  readonly number: number;
  readonly status: number;
}

/** The state of keys and rings that follows from the log. */
class Model {
  readonly #off = new Set<string>();
  rings = 0;
  readonly granted = new Map<string, number>();

  /** Applies the request, and returns its expected status. */
  next({ kind, name, on }: Op): number {
    if (kind === 'encrypt') {
      if (this.#off.has(name)) return 403;
      this.granted.set(name, (this.granted.get(name) ?? 0) + 1);
    } else if (kind === 'switch') {
      if (on === 0) this.#off.add(name);
      else this.#off.delete(name);
    } else {
      if (this.rings >= quota) return 409;
      this.rings++;
    }
    return 200;
  }

  value(name: string): number {
    return this.#off.has(name) ? 0 : 1;
  }
}

/** Throws if the history is impossible. Returns the state of keys and rings that follows from the log. */
export function judge(ops: readonly Op[], log: readonly Entry[]): { rings: number; granted: Map<string, number> } {
  const byNumber = new Map(ops.map((op) => [op.number, op]));
  const place = new Map<number, number>();
  const model = new Model();
  /** The values of each key before the first record, after the first, and so on. */
  const values = [new Map<string, number>()];
  for (const { number, status } of log) {
    const op = byNumber.get(number);
    assert.ok(op, `record of no request: ${number}`);
    assert.ok(!place.has(number), `request ${number} was done twice`);
    place.set(number, values.length);
    assert.ok(!op.refused, `request ${number} was answered as taken back, and was done`);
    assert.equal(status, model.next(op), `request ${number} (${op.kind} ${op.name}) at its place in the log`);
    if (op.answer !== undefined) assert.equal(op.answer, status, `the answer to request ${number}`);
    values.push(op.kind === 'switch' ? new Map(values.at(-1)).set(op.name, model.value(op.name)) : last(values));
  }
  for (const op of ops) {
    const isDone = op.kind !== 'look' && op.answer !== undefined && !op.mayBeLost;
    if (isDone) assert.ok(place.has(op.number), `request ${op.number} was answered, and is not there`);
  }
  inRealTime(ops, place, values);
  return { rings: model.rings, granted: model.granted };
}

function last<T>(list: readonly T[]): T {
  const found = list.at(-1);
  if (found === undefined) throw new Error('an empty list');
  return found;
}

/**
 * A request answered before another was sent comes first in the log; a value seen without a record existed meanwhile.
 */
function inRealTime(
  ops: readonly Op[],
  place: ReadonlyMap<number, number>,
  values: readonly ReadonlyMap<string, number>[],
): void {
  const at = ({ number }: Op): number => place.get(number) ?? 0;
  const placed = ops.filter(({ number }) => place.has(number)).sort((a, b) => at(a) - at(b));
  let latest = 0;
  for (const op of placed) {
    assert.ok((op.until ?? Number.POSITIVE_INFINITY) > latest, `request ${op.number} was done behind a later one`);
    latest = Math.max(latest, op.from);
  }
  for (const look of ops) {
    if (look.kind !== 'look' || look.answer === undefined || look.mayBeLost) continue;
    const { from, until = 0, name, answer } = look;
    const before = placed.filter((op) => (op.until ?? Number.POSITIVE_INFINITY) < from && !op.mayBeLost);
    const first = Math.max(0, ...before.map(at));
    const after = placed.filter((op) => op.from > until).map(at);
    const end = Math.min(values.length, ...after);
    const seen = values.slice(first, end).some((each) => (each.get(name) ?? 1) === answer);
    assert.ok(seen, `look ${look.number} saw ${answer} for ${name}, which it was not then`);
  }
}

/** Copies of the history with a request, or the log, changed in one place: the judge must reject each. */
export function falsified(
  ops: readonly Op[],
  log: readonly Entry[],
): (readonly [what: string, readonly Op[], readonly Entry[]])[] {
  const change = (number: number | undefined, more: Partial<Op>): readonly Op[] =>
    ops.map((op) => (op.number === number ? { ...op, ...more } : op));
  const opOf = (entry: Entry): Op | undefined => ops.find(({ number }) => number === entry.number);
  const granted = ops.find(({ kind, answer }) => kind === 'encrypt' && answer === 200);
  const denied = ops.find(({ kind, answer }) => kind === 'encrypt' && answer === 403);
  const look = ops.find(({ kind, answer }) => kind === 'look' && answer !== undefined);
  const made = ops.find(({ kind, answer }) => kind === 'make' && answer === 200);
  const answered = log.find((entry) => opOf(entry)?.answer !== undefined);
  const isGranted = (entry: Entry, name: string | undefined): boolean =>
    opOf(entry)?.kind === 'encrypt' && opOf(entry)?.name === name && entry.status === 200;
  // Revokes a key that was used before.
  const revoking = log.findIndex((entry, at) => {
    const op = opOf(entry);
    return op?.kind === 'switch' && op.on === 0 && log.slice(0, at).some((before) => isGranted(before, op.name));
  });
  const entry = log[revoking];
  assert.ok(granted && denied && look && made && answered && entry, 'the history has something of everything');
  const before = log.slice(0, revoking).findLastIndex((each) => isGranted(each, opOf(entry)?.name));
  const first = log.map((each) => each.number).indexOf(answered.number);
  return [
    ['granted though it was denied', change(denied.number, { answer: 200 }), log],
    ['denied though it was granted', change(granted.number, { answer: 403 }), log],
    ['over the quota', change(made.number, { answer: 409 }), log],
    ['seen as it was not', change(look.number, { answer: 7 }), log],
    ['taken back, and there', change(answered.number, { refused: true }), log],
    ['answered, and not there', ops, log.filter(({ number }) => number !== answered.number)],
    ['done twice', ops, [...log, answered]],
    ['a record of nobody', ops, [...log, { number: 1e6, status: 200 }]],
    ['granted behind a revocation', ops, [...log.slice(0, before), entry, ...log.slice(before, revoking)]],
    ['out of real time', ops, [...log.slice(0, first), ...log.slice(first + 1), answered]],
  ];
}

/** The log of a node; verifies every link of its chain. */
export async function logOf(store: Store<NoteTables>): Promise<{ entries: Entry[]; head: string }> {
  const entries: Entry[] = [];
  let chain = Buffer.alloc(32);
  let next = 1;
  for await (const { record, line, hash } of store.activity.read(1) as AsyncIterable<ChainedActivity>) {
    chain = createHash('sha256').update(chain).update(line).digest();
    assert.equal(hash, chain.toString('base64url'), 'the chain of activity');
    assert.equal(record.seq, next++, 'places without gaps');
    entries.push({ number: Number(record.id.slice(4)), status: record.status });
  }
  return { entries, head: chain.toString('base64url') };
}
