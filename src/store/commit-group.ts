// The transactions that become durable together, encoded as the text of one log record; group-replay.ts reads it.
//
// The text is one line of JSON, `{"from":n,"sql":[text, …],"tx":[[[number, param, …], …], …],"counts":[[number, sum,
// id, …], …]}`, then one line for each activity record. Statement texts are numbered through a log file; `from` is the
// number of the first one in this record. `counts` is left out if nothing was counted; an id is followed by the further
// parameters of its latest count, if any. `"begins":true` stands in the first record after the store was opened.
//
// The fields that most activity records of a group share stand once, in the first line: `"at"`, epoch milliseconds, and
// `"alike":[[action, keyid, ringname, status, validAction, address], …]`, the address only if there is one. A record's
// own line is `<number in alike> <milliseconds after at> <id>`, then the key version if `props` holds only that. A
// record with other props or a reporter, or one that does not fit this form, is a JSON line of its own.
import { utf8 } from '../crypto/bytes.ts';
import { keyVersionOf } from './activity/kind.ts';
import type { ActivityInput } from './port.ts';
import type { Count, Written } from './session.ts';
import type { Tally } from './sql.ts';
import type { LoggedStatement } from './state.ts';

/** Counts the statement texts in a log file. Each file has its own. */
export class Numbering {
  count = 0;
}

/** The fields that records share, as an entry of `"alike"`. */
export type AlikeText = readonly [
  action: string,
  keyid: string,
  ringname: string,
  status: number,
  validAction: boolean,
  address?: string | undefined,
];

export interface ActivityHead {
  readonly at: number;
  readonly alike: readonly AlikeText[];
}

export class Group {
  readonly done: Promise<void>;
  /** Transactions in it. */
  count = 0;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
  readonly #numbering: Numbering;
  readonly #from: number;
  #texts = '';
  #transactions = '';
  readonly #activity = new GroupActivity();
  /** Tallies by statement number, then by id. */
  readonly #counts = new Map<number, Map<string, Tally>>();

  constructor(numbering: Numbering) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.done = promise;
    this.resolve = resolve;
    this.reject = reject;
    // No caller may be waiting when it fails.
    promise.catch(() => {});
    this.#numbering = numbering;
    this.#from = numbering.count;
  }

  add(written: Written): void {
    const { statements, params, records, counts } = written;
    let text = this.count === 0 ? '[' : ',[';
    for (let i = 0; i < statements.length; i++) {
      const statement = statements[i];
      const values = params[i];
      if (!statement || !values) continue;
      text += i === 0 ? '[' : ',[';
      text += this.#place(statement);
      text += values.length === 0 ? ']' : `,${JSON.stringify(values).slice(1)}`;
    }
    this.#transactions += `${text}]`;
    for (let i = 0; i < records.length; i++) {
      const record = records[i];
      if (record) this.#activity.add(record);
    }
    for (const each of counts) this.#count(each);
    this.count++;
  }

  #count({ statement, id, latest }: Count): void {
    const place = this.#place(statement);
    let sums = this.#counts.get(place);
    if (!sums) {
      sums = new Map();
      this.#counts.set(place, sums);
    }
    sums.set(id, { sum: (sums.get(id)?.sum ?? 0) + 1, latest });
  }

  /** The number of a statement's text in this log file. Adds the text if it is new. */
  #place(statement: LoggedStatement): number {
    if (statement.logged !== this.#numbering) {
      statement.logged = this.#numbering;
      statement.place = this.#numbering.count++;
      this.#texts += `${this.#texts === '' ? '' : ','}${JSON.stringify(statement.text)}`;
    }
    return statement.place;
  }

  /** `begins`: nothing was written before since the store was opened. */
  payload(begins: boolean): Uint8Array {
    const sums: unknown[] = [];
    for (const [place, ids] of this.#counts) {
      for (const [id, { sum, latest }] of ids) sums.push([place, sum, id, ...latest]);
    }
    const counts = sums.length === 0 ? '' : `,"counts":${JSON.stringify(sums)}`;
    const { head, lines } = this.#activity;
    const run = begins ? ',"begins":true' : '';
    const activity = head ? `,"at":${head.at},"alike":${JSON.stringify(head.alike)}` : '';
    return utf8(
      `{"from":${this.#from},"sql":[${this.#texts}],"tx":[${this.#transactions}]${counts}${activity}${run}}\n${lines}`,
    );
  }
}

/** Newest entries of `alike` that a record is compared with; if none matches, it adds its own. */
const mostCompared = 16;

export class GroupActivity {
  readonly #alike: AlikeText[] = [];
  #at: number | undefined;
  #lines = '';

  add(record: ActivityInput): void {
    const { id, createdAt, props, reporter } = record;
    this.#at ??= createdAt;
    const after = createdAt - this.#at;
    const isShort =
      Number.isSafeInteger(createdAt) && Number.isSafeInteger(after) && plain.test(id) && reporter === undefined;
    const version = isShort ? versionText(props) : undefined;
    this.#lines +=
      version === undefined ? `${JSON.stringify(record)}\n` : `${this.#numberOf(record)} ${after} ${id}${version}\n`;
  }

  /** Undefined if there is no record. */
  get head(): ActivityHead | undefined {
    return this.#at === undefined ? undefined : { at: this.#at, alike: this.#alike };
  }

  /** The records' lines, each ended by a line feed. */
  get lines(): string {
    return this.#lines;
  }

  #numberOf({ action, keyid, ringname, status, validAction, address }: ActivityInput): number {
    const alike = this.#alike;
    for (let i = alike.length - 1; i >= Math.max(0, alike.length - mostCompared); i--) {
      const known = alike[i];
      if (
        known?.[1] === keyid &&
        known[0] === action &&
        known[2] === ringname &&
        known[3] === status &&
        known[4] === validAction &&
        known[5] === address
      ) {
        return i;
      }
    }
    const shared = [action, keyid, ringname, status, validAction] as const;
    return alike.push(address === undefined ? shared : [...shared, address]) - 1;
  }
}

/** Ids that fit a record's own line. */
export const plain = /^\w+$/;

/** The text after an id; undefined if `props` holds more than a key version. */
function versionText(props: ActivityInput['props']): string | undefined {
  let text = '';
  for (const name in props) {
    if (!Object.hasOwn(props, name)) continue;
    const version = keyVersionOf(props);
    if (name !== 'keyVersion' || version === undefined) return undefined;
    text = ` ${version}`;
  }
  return text;
}
