// The note of the last backup that was found to restore: a setting of the appliance's own store, read strictly.
import { isCount, isJsonObject, jsonOf } from '../model/json.ts';
import { parseTimestamp } from '../model/timestamp.ts';
import { notSetting } from '../platform/epoch.ts';
import { isTexts } from './format.ts';
import type { Proof } from './prove.ts';

/** A backup that was restored on trial. */
export interface VerifiedBackup extends Proof {
  /** Path of the file; absent for a drill, whose backup is removed. */
  readonly file?: string;
  readonly bytes: number;
  /** RFC 3339: the moment of the data, and the time at which it was verified. */
  readonly madeAt: string;
  readonly verifiedAt: string;
}

/** The setting `backup`. Throws `corrupt` for anything that `makeVerified` does not write. */
export function readVerified(text: string): VerifiedBackup {
  const value = jsonOf(text);
  if (!isJsonObject(value)) throw notSetting('backup');
  const { file, bytes, madeAt, verifiedAt, stores, transactions, activities, rows, lacks } = value;
  const isTime = (time: unknown): time is string => typeof time === 'string' && parseTimestamp(time) !== undefined;
  if (!isCount(bytes) || !isCount(stores) || !isCount(transactions) || !isCount(activities) || !isCount(rows)) {
    throw notSetting('backup');
  }
  const isFile = file === undefined || typeof file === 'string';
  if (!isFile || !isTime(madeAt) || !isTime(verifiedAt) || !isTexts(lacks)) throw notSetting('backup');
  const proof = { stores, transactions, activities, rows, lacks };
  return { ...(file === undefined ? {} : { file }), bytes, madeAt, verifiedAt, ...proof };
}
