// The activity records of a group as its text has them: what most of them share once, then a short line for each.
//
// The text's first line has `"at"`, epoch milliseconds, and `"who":[[action, keyid, ringname, status, validAction], …]`. A record is
// `<number in who> <milliseconds after at> <id>`; one that has props, or that this cannot say, is JSON of itself. JSON that has a `seq` is the
// record's canonical line, as the first logs had them all.
import { KmsError } from '../errors.ts';
import type { ActivityInput } from './port.ts';

type Who = readonly [action: string, keyid: string, ringname: string, status: number, validAction: boolean];

export interface ActivityHead {
  readonly at: number;
  readonly who: readonly Who[];
}

/** More are not looked through: each further record brings its own. */
const mostCompared = 16;

export class GroupActivity {
  readonly #who: Who[] = [];
  #at: number | undefined;
  #lines = '';

  add(record: ActivityInput): void {
    const { id, createdAt, props } = record;
    this.#at ??= createdAt;
    const after = createdAt - this.#at;
    const isShort = Number.isSafeInteger(createdAt) && Number.isSafeInteger(after) && plain.test(id) && isEmpty(props);
    this.#lines += isShort ? `${this.#numberOf(record)} ${after} ${id}\n` : `${JSON.stringify(record)}\n`;
  }

  /** Undefined where there is no record. */
  get head(): ActivityHead | undefined {
    return this.#at === undefined ? undefined : { at: this.#at, who: this.#who };
  }

  /** Each with a line feed behind it. */
  get lines(): string {
    return this.#lines;
  }

  #numberOf({ action, keyid, ringname, status, validAction }: ActivityInput): number {
    const who = this.#who;
    for (let i = who.length - 1; i >= Math.max(0, who.length - mostCompared); i--) {
      const known = who[i];
      if (
        known?.[1] === keyid &&
        known[0] === action &&
        known[2] === ringname &&
        known[3] === status &&
        known[4] === validAction
      ) {
        return i;
      }
    }
    return who.push([action, keyid, ringname, status, validAction]) - 1;
  }
}

const plain = /^\w+$/;

function isEmpty(props: ActivityInput['props']): boolean {
  for (const name in props) if (Object.hasOwn(props, name)) return false;
  return true;
}

/** The record of a line, or its canonical line where it is that. Throws for what is neither. */
export function readRecord({ at, who }: ActivityHead, line: string): ActivityInput | string {
  if (line.startsWith('{')) {
    const value = JSON.parse(line);
    // Cast: the line was sealed by `GroupActivity.add`.
    return Object.hasOwn(value, 'seq') ? line : (value as ActivityInput);
  }
  const [number, after, id, ...more] = line.split(' ');
  const found = who[Number(number)];
  if (!found || id === undefined || more.length > 0)
    throw new KmsError('corrupt', 'an activity record has no such format');
  const createdAt = at + Number(after);
  if (!Number.isSafeInteger(createdAt)) throw new KmsError('corrupt', 'an activity record has no such time');
  const [action, keyid, ringname, status, validAction] = found;
  return { id, createdAt, keyid, action, ringname, validAction, status, props: {} };
}
