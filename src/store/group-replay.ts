// Replays a log from the texts of its records (format: commit-group.ts) for a start, a checkpoint, or a node that
// follows others. Activity lines in the usual short form are parsed directly from their bytes.
import { fromUtf8 } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';
import { idLength, keyVersionOf } from './activity/kind.ts';
import type { Alike } from './activity/record.ts';
import { type ActivityHead, type AlikeText, plain } from './commit-group.ts';
import type { Applied } from './log-file.ts';
import type { ActivityInput } from './port.ts';
import type { SqlValue, Tally } from './sql.ts';
import type { State, Statement } from './state.ts';
import { corrupt } from './store-files.ts';

interface Payload {
  readonly from: number;
  readonly sql: string[];
  readonly tx: [number, ...SqlValue[]][][];
  readonly counts?: [number, number, string, ...SqlValue[]][];
  readonly at?: number;
  readonly alike?: ActivityHead['alike'];
  readonly begins?: boolean;
}

/** The store that serves from the state during the replay, and caches parts of it. */
interface ReplayObserver {
  /** A statement from another node was run. */
  ran(statement: Statement): void;
  /** Another node counted: keeps the tally and runs it later. */
  tally(statement: Statement, id: string, tally: Tally): void;
}

/** Receives the replayed activity records. */
export interface ReplayedActivity {
  replay(record: ActivityInput): void;
  /** Takes a record without a reporter and with no props but a key version, whose id is 30 bytes of `bytes`. */
  replayAlike(alike: Alike, createdAt: number, bytes: Uint8Array, idAt: number, keyVersion?: number): void;
}

/** Replays the groups of one log file. */
export class GroupReplayer {
  readonly #state: State;
  readonly #activity: ReplayedActivity;
  readonly #observer: ReplayObserver | undefined;
  #texts: string[] = [];
  /** The counts since the last statement of another kind, summed and then run once. */
  readonly #counts = new Map<Statement, Map<string, Tally>>();

  constructor(state: State, activity: ReplayedActivity, observer?: ReplayObserver) {
    this.#state = state;
    this.#activity = activity;
    this.#observer = observer;
  }

  apply(payload: Uint8Array, name: string, offset: number): Applied {
    const end = endOfLine(payload, 0);
    const first = fromUtf8(payload.subarray(0, end));
    if (first === undefined) throw corrupt(name, offset, 'a record is not UTF-8');
    try {
      // Cast: the record was sealed by `Group.payload`.
      const { from, sql, tx, counts = [], begins = false, ...activity } = JSON.parse(first) as Payload;
      this.#texts.length = from;
      for (const each of sql) this.#texts.push(each);
      if (tx.some((statements) => statements.length > 0)) this.#run(tx);
      for (const count of counts) this.#count(count);
      this.#readRecords(activity, payload, end + 1);
      return { transactions: tx.length, begins };
    } catch (cause) {
      const what = cause instanceof KmsError ? cause.message : 'no such format';
      throw corrupt(name, offset, `a record verifies but cannot be run again: ${what}`);
    }
  }

  /** Runs the remaining counts. */
  finish(): void {
    if (this.#counts.size === 0) return;
    this.#state.control('BEGIN');
    this.#runCounts();
    this.#state.control('COMMIT');
  }

  #run(transactions: Payload['tx']): void {
    this.#state.control('BEGIN');
    this.#runCounts();
    for (const statements of transactions) {
      for (const [number, ...params] of statements) {
        const statement = this.#statement(number);
        this.#state.run(statement, params);
        this.#observer?.ran(statement);
      }
    }
    this.#state.control('COMMIT');
  }

  #runCounts(): void {
    for (const [statement, tallies] of this.#counts) {
      for (const [id, { sum, latest }] of tallies) this.#state.run(statement, [sum, id, ...latest]);
    }
    this.#counts.clear();
  }

  /** Sums counts for later, unless a observer keeps tallies beside the tables. */
  #count([number, sum, id, ...latest]: [number, number, string, ...SqlValue[]]): void {
    const statement = this.#statement(number);
    if (this.#observer) {
      this.#observer.tally(statement, id, { sum, latest });
      return;
    }
    let tallies = this.#counts.get(statement);
    if (!tallies) {
      tallies = new Map();
      this.#counts.set(statement, tallies);
    }
    tallies.set(id, { sum: (tallies.get(id)?.sum ?? 0) + sum, latest });
  }

  #statement(number: number): Statement {
    return this.#state.logged(this.#texts[number] ?? '');
  }

  #readRecords({ at = 0, alike = [] }: Partial<Payload>, payload: Uint8Array, start: number): void {
    const head = { at, alike };
    const kinds = alike.map(asRecords);
    for (let from = start; from < payload.length; ) {
      const short = readShort(payload, from);
      const kind = short && kinds[short.number];
      const createdAt = at + (short?.after ?? 0);
      if (short && kind && Number.isSafeInteger(createdAt)) {
        this.#activity.replayAlike(kind, createdAt, payload, short.idAt, short.keyVersion);
        from = short.end;
        continue;
      }
      const end = endOfLine(payload, from);
      const line = fromUtf8(payload.subarray(from, end));
      if (line === undefined) throw new KmsError('corrupt', 'an activity record is not UTF-8');
      if (line !== '') this.#activity.replay(readRecord(head, line));
      from = end + 1;
    }
  }
}

const lineFeed = 0x0a;
const space = 0x20;

/** The end of the line that begins at `from`. */
function endOfLine(bytes: Uint8Array, from: number): number {
  const end = bytes.indexOf(lineFeed, from);
  return end < 0 ? bytes.length : end;
}

function asRecords([action, keyid, ringname, status, validAction, address]: AlikeText): Alike {
  return { action, keyid, ringname, status, validAction, address };
}

/** A line in the short form: the position of its id, and of the next line. */
interface ShortLine {
  readonly number: number;
  readonly after: number;
  readonly idAt: number;
  readonly keyVersion: number | undefined;
  readonly end: number;
}

/** Longest run of digits that is certainly a safe integer. */
const mostDigits = 9;
/** 1 for each byte that `plain` matches. */
const isWord = Uint8Array.from({ length: 256 }, (_, code) =>
  code < 128 && plain.test(String.fromCharCode(code)) ? 1 : 0,
);

/** Undefined if the line has to be parsed as text. */
function readShort(bytes: Uint8Array, from: number): ShortLine | undefined {
  const numberEnd = digitsEnd(bytes, from);
  const afterEnd = digitsEnd(bytes, numberEnd + 1);
  if (bytes[numberEnd] !== space || bytes[afterEnd] !== space) return undefined;
  const idAt = afterEnd + 1;
  const idEnd = idAt + idLength;
  for (let at = idAt; at < idEnd; at++) if (isWord[bytes[at] ?? 0] === 0) return undefined;
  const end = bytes[idEnd] === space ? digitsEnd(bytes, idEnd + 1) : idEnd;
  if (bytes[end] !== lineFeed) return undefined;
  return {
    number: digits(bytes, from, numberEnd),
    after: digits(bytes, numberEnd + 1, afterEnd),
    idAt,
    keyVersion: end === idEnd ? undefined : digits(bytes, idEnd + 1, end),
    end: end + 1,
  };
}

/** The end of the digits that begin at `from`; -1 if there are none, or too many. */
function digitsEnd(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at <= from + mostDigits && isDigit(bytes[at] ?? 0)) at++;
  return at === from || at > from + mostDigits ? -1 : at;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function digits(bytes: Uint8Array, from: number, end: number): number {
  let value = 0;
  for (let at = from; at < end; at++) value = value * 10 + (bytes[at] ?? 0) - 0x30;
  return value;
}

/** The record of a line. Throws if the line is malformed. */
export function readRecord({ at, alike }: ActivityHead, line: string): ActivityInput {
  if (line.startsWith('{')) {
    // Cast: the line was sealed by `GroupActivity.add`.
    return JSON.parse(line) as ActivityInput;
  }
  const [number, after, id, version, ...more] = line.split(' ');
  const found = alike[Number(number)];
  if (!found || id === undefined || more.length > 0)
    throw new KmsError('corrupt', 'an activity record has no such format');
  const createdAt = at + Number(after);
  if (!Number.isSafeInteger(createdAt)) throw new KmsError('corrupt', 'an activity record has no such time');
  const [action, keyid, ringname, status, validAction, address] = found;
  const props = version === undefined ? {} : { keyVersion: Number(version) };
  if (version !== undefined && keyVersionOf(props) === undefined)
    throw new KmsError('corrupt', 'an activity record has no such key version');
  return { id, createdAt, keyid, action, ringname, validAction, status, props, address };
}
