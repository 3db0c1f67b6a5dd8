// Key usage in the list of a ring's keys, summed up for people.

/** Uses on one day, which is `YYYY-MM-DD` in UTC. */
interface DayOfUse {
  readonly day: string;
  readonly encrypts: number;
  readonly decrypts: number;
}

/** Number of days summed up, including today. */
export const recentDays = 30;

/** Uses of a key on the `recentDays` up to `now`, in epoch milliseconds. */
export function recentUses(days: readonly DayOfUse[], now: number): { encrypts: number; decrypts: number } {
  const first = new Date(now - (recentDays - 1) * 86_400_000).toISOString().slice(0, 10);
  const sums = { encrypts: 0, decrypts: 0 };
  for (const { day, encrypts, decrypts } of days) {
    if (day < first) continue;
    sums.encrypts += encrypts;
    sums.decrypts += decrypts;
  }
  return sums;
}
