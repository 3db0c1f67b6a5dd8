// The epoch of a data directory, and the other settings of the system store that are read before it is open.
import { isAbsolute } from 'node:path';
import { KmsError } from '../errors.ts';
import { isCount, isJsonObject, jsonOf } from '../model/json.ts';
import { parseTimestamp } from '../model/timestamp.ts';
import type { ReadStore } from '../store/port.ts';
import type { SettingTable, SystemTables } from '../store/tables/databases.ts';
import { systemDir } from './data-dir.ts';

/**
 * The epoch of a data directory: it starts at 1, and rises with each restore, and with each start that accepts older
 * files. Together with the stores' log positions it only grows, so that a client that remembers the highest one notices
 * when an older copy is back in use.
 */
export interface Epoch {
  readonly number: number;
  /** RFC 3339: when the restore, or the start with older files, began the epoch; and the time of the copy, if any. */
  readonly restoredAt?: string;
  readonly madeAt?: string;
}

const first: Epoch = { number: 1 };

/** Highest number of an epoch: directories that are shipped to have at most 15 digits of it in their names. */
export const latestEpoch = 999_999_999_999_999;

export function currentEpoch(settings: Pick<SettingTable, 'get'>): Epoch {
  const text = settings.get('epoch');
  return text === undefined ? first : readEpoch(text);
}

/** The epoch in a store that was read but is not open. */
export function epochIn(system: Pick<ReadStore<SystemTables>, 'rows'>): number {
  const text = settingIn(system, 'epoch');
  return (text === undefined ? first : readEpoch(text)).number;
}

/** Throws `corrupt` for anything but an epoch: its number becomes part of a directory's name. */
function readEpoch(text: string): Epoch {
  const value = jsonOf(text);
  const { number, restoredAt, madeAt } = isJsonObject(value) ? value : {};
  const isTime = (time: unknown): boolean =>
    time === undefined || (typeof time === 'string' && parseTimestamp(time) !== undefined);
  if (!isCount(number) || number < 1 || number > latestEpoch || !isTime(restoredAt) || !isTime(madeAt)) {
    throw notSetting('epoch');
  }
  return {
    number,
    ...(restoredAt === undefined ? {} : { restoredAt: String(restoredAt) }),
    ...(madeAt === undefined ? {} : { madeAt: String(madeAt) }),
  };
}

/** The error for a setting of the appliance's own store that no appliance writes like that. */
export function notSetting(name: string): KmsError {
  return new KmsError('corrupt', `${systemDir}: the setting ${name} is none that kms writes`, {
    hint: 'nothing was changed; find out who made this directory, or restore from a backup',
  });
}

/** The directory that the appliance last shipped to, empty if none. Throws `corrupt` for anything but a whole path. */
export function shipToIn(system: Pick<ReadStore<SystemTables>, 'rows'>): string {
  const path = settingIn(system, 'ship-to') ?? '';
  if (path === '' || (isAbsolute(path) && !path.includes('\0'))) return path;
  throw notSetting('ship-to');
}

function settingIn(system: Pick<ReadStore<SystemTables>, 'rows'>, name: 'epoch' | 'ship-to'): string | undefined {
  const [row] = system.rows<{ value: string }>((schema) =>
    schema === 0 ? `SELECT '' AS value WHERE 0` : `SELECT value FROM settings WHERE name = '${name}'`,
  );
  return row?.value;
}

/** In epoch milliseconds, so that of two restores of one copy the later has the higher epoch. */
export function nextEpoch(settings: SettingTable, now: number, origin?: { readonly madeAt: string }): Epoch {
  const before = currentEpoch(settings);
  const number = Math.max(before.number + 1, Math.floor(now));
  if (number > latestEpoch) {
    throw new KmsError('refused', `the next epoch would be ${number}, expected at most ${latestEpoch}`, {
      hint: 'nothing was changed; no clock leads there: set the clock right, or restore a backup from before it',
    });
  }
  const epoch: Epoch = { number, restoredAt: new Date(now).toISOString(), ...(origin && { madeAt: origin.madeAt }) };
  settings.set('epoch', JSON.stringify(epoch));
  return epoch;
}
