// Builders for the activity tests: a log on files in memory, and records of a small world in which each filter matches
// some and not others.
import {
  type ActivityLog,
  type ActivityLogOptions,
  emptyHead,
  openActivityLog,
} from '../../src/store/activity/activity-log.ts';
import type { ActivityInput } from '../../src/store/port.ts';
import { MemoryFiles } from '../support/memory-files.ts';

export const uid = Uint8Array.from({ length: 16 }, (_, index) => index + 1);

/** Keys of epochs 1 to `held`; each key is its epoch's number, 32 times. */
export function testKeys(epoch = 1, held = 3) {
  return {
    epoch,
    key(_label: 'activity', wanted = epoch): Uint8Array {
      if (wanted > held) throw new Error(`no epoch ${wanted}`);
      return new Uint8Array(32).fill(wanted);
    },
  };
}

export function testLog(options: Partial<ActivityLogOptions> = {}): { log: ActivityLog; files: MemoryFiles } {
  const files = new MemoryFiles();
  return { log: openActivityLog({ ...emptyOn(files), ...options }), files };
}

/** Options that open a log without records on these files. */
export function emptyOn(files: MemoryFiles): ActivityLogOptions {
  return { files, dir: 't', keys: testKeys(), uid, segments: [], tail: [], head: emptyHead };
}

/** An id that sorts like `number`. */
export function testId(number: number): string {
  return `act_${String(number).padStart(10, '0')}${'0'.repeat(16)}`;
}

export function activity(number: number, changes: Partial<ActivityInput> = {}): ActivityInput {
  return {
    id: testId(number),
    createdAt: 1_700_000_000_000 + number,
    keyid: `apik_${number % 7}`,
    action: number % 3 === 0 ? 'keyring.encrypt' : 'keyring.decrypt',
    ringname: number % 5 === 0 ? '' : `ring-${number % 5}`,
    validAction: number % 11 !== 0,
    status: number % 11 === 0 ? 403 : 200,
    props: number % 4 === 0 ? { number, tag: { even: true, by: number % 8 } } : {},
    ...changes,
  };
}

/** Like `activity`, every other record with an address, every fourth with the changes that were made. */
export function auditedActivity(number: number): ActivityInput {
  const object = { type: 'user', id: `user_${number % 9}`, name: `Name ${number % 9}` };
  return activity(number, {
    ...(number % 2 === 0 && { address: addressOf(number) }),
    ...(number % 4 === 0 && { props: { object, granted: ['keyring.list'], revoked: [`flag.${number % 8}`] } }),
  });
}

function addressOf(number: number): string {
  return number % 6 === 0 ? `2001:db8:${number % 3}::${(number % 5) + 1}` : `192.0.2.${number % 40}`;
}

/** Record `number` as `fill` adds it: every other one has an address. */
export function filling(number: number): ActivityInput {
  return activity(number, number % 2 === 0 ? { address: addressOf(number) } : {});
}

/** Adds and commits records `from` to `to`. */
export function fill(log: ActivityLog, from: number, to: number): void {
  for (let number = from; number <= to; number++) log.stage(filling(number));
  log.commitStaged();
}

/** All items of an iteration, mapped, in order. */
export async function collect<T, R>(items: AsyncIterable<T>, map: (item: T) => R): Promise<R[]> {
  const all: R[] = [];
  for await (const item of items) all.push(map(item));
  return all;
}

/**
 * Does what a checkpoint does: another log, opened from the same state, rolls, and the first one adopts its segments.
 * Returns the other log.
 */
export async function checkpoint(log: ActivityLog, options: ActivityLogOptions): Promise<ActivityLog> {
  const worker = openActivityLog({ ...options, segments: log.segments, tail: log.tailLines(), head: log.head });
  const segments = await worker.roll();
  log.adopt(JSON.parse(JSON.stringify(segments)));
  return worker;
}
