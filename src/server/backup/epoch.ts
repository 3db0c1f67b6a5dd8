// The epoch of a data directory: it begins at 1, and a restore begins a later one. Together with the sequences of the stores it only
// grows, so that whoever remembers the highest that it saw notices when an older copy has come back to life.
import type { SettingTable } from '../../store/tables/settings.ts';

export interface Epoch {
  readonly number: number;
  /** RFC 3339: when the restore was that began it, and of which time the copy was. */
  readonly restoredAt?: string;
  readonly madeAt?: string;
}

const first: Epoch = { number: 1 };

export async function currentEpoch(settings: Pick<SettingTable, 'get'>): Promise<Epoch> {
  const text = await settings.get('epoch');
  // Cast: only `nextEpoch` writes it.
  return text === undefined ? first : (JSON.parse(text) as Epoch);
}

/** Milliseconds since 1970, so that of two restores from one copy the later one has the higher epoch. */
export async function nextEpoch(
  settings: SettingTable,
  now: number,
  origin: { readonly madeAt: string },
): Promise<Epoch> {
  const before = await currentEpoch(settings);
  const number = Math.max(before.number + 1, Math.floor(now));
  const epoch: Epoch = { number, restoredAt: new Date(now).toISOString(), madeAt: origin.madeAt };
  await settings.set('epoch', JSON.stringify(epoch));
  return epoch;
}
