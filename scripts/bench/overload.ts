// Overload: how much one core still serves in total, and how long a client with few requests waits beside one with very
// many.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeAppliance, serve } from './appliance.ts';
import { goal, median, row, short } from './figures.ts';
import { load, type Measured } from './load.ts';

const fewest = 64;
/** Number of clients, as a multiple of `fewest`; each sends its next request once the last is answered. */
const loads = [1, 2, 5, 20];

/** @param seconds of each measurement. @param rounds in which each load is measured once. */
export async function measureOverload(seconds: number, rounds: number): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'kms-bench-'));
  const appliance = makeAppliance(join(home, 'data'));
  const server = await serve(0, appliance);
  await server.ask('/ks/keyrings', { name: 'bench' });
  const flags = { 'keyring.bench.encrypt': true };
  const few = JSON.parse(await server.ask('/auth/apikey', { accountId: appliance.accountId, flags })).key;
  const encrypts = (clients: number, headers: Record<string, string>): Promise<Measured> =>
    load(1, {
      url: `${server.url}/ks/encrypt`,
      headers,
      body: JSON.stringify({ ringname: 'bench' }),
      clients,
      seconds,
    });
  await encrypts(fewest, appliance.headers); // the warm-up
  const measured = loads.map((): { many: Measured; few: Measured }[] => []);
  for (let round = 0; round < rounds; round++) {
    for (const [at, times] of loads.entries()) {
      const [many, beside] = await Promise.all([
        encrypts(fewest * times, appliance.headers),
        encrypts(4, { ...appliance.headers, authorization: `Bearer ${few}` }),
      ]);
      measured[at]?.push({ many, few: beside });
    }
  }
  console.log(
    `\nOverload: encrypts by so many clients of one key, beside 4 of another; ${rounds} rounds of ${seconds} s`,
  );
  row('clients', 'a second', 'p50 ms', 'p99 ms', '4: a second', 'p50 ms', 'p99 ms');
  const of = (at: number, who: 'many' | 'few', field: keyof Measured) =>
    median((measured[at] ?? []).map((each) => each[who][field]));
  const all = (at: number) => of(at, 'many', 'perSecond') + of(at, 'few', 'perSecond');
  for (const [at, times] of loads.entries()) {
    const cells = (who: 'many' | 'few') =>
      (['perSecond', 'p50', 'p99'] as const).map((field) => short(of(at, who, field)));
    row(String(fewest * times), ...cells('many'), ...cells('few'));
  }
  const peak = Math.max(...loads.map((_, at) => all(at)));
  for (const [at, times] of loads.entries()) {
    if (at > 0) goal(`answered at ${times} times the clients, of the most of all`, all(at) / peak, 0.9, 'at least');
  }
  await server.stop();
  rmSync(home, { recursive: true });
}
