// The effect of 50 logins at once on encrypts: their latency alone and beside the logins, in alternation, with the
// system free to put the server and the load on either core.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeAppliance, type Served, serve } from './appliance.ts';
import { goal, median, row, short } from './figures.ts';
import { load, type Measured } from './load.ts';

const atOnce = 50;
const clientCounts = [1, 8, 64];

/** @param seconds of each measurement. */
export async function measureLogins(seconds: number, rounds: number): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'kms-bench-'));
  const appliance = makeAppliance(join(home, 'data'));
  const server = await serve('any', appliance);
  await server.ask('/ks/keyrings', { name: 'bench' });
  const { password } = JSON.parse(
    await server.ask('/auth/users', { username: 'bench', email: 'bench@example.com', firstName: 'B', lastName: 'B' }),
  );
  const encrypts = (clients: number, duration: number): Promise<Measured> => {
    const body = JSON.stringify({ ringname: 'bench' });
    const url = `${server.url}/ks/encrypt`;
    return load('any', { url, headers: appliance.headers, body, clients, seconds: duration });
  };
  await encrypts(8, 2); // the warm-up

  console.log(`\nLogins: ${atOnce} at once beside encrypts, any core; median of ${rounds} rounds of ${seconds} s`);
  row('encrypts by', 'p50 ms', 'beside', 'p99 ms', 'beside', 'encrypts/s', 'beside', 'logins/s');
  for (const clients of clientCounts) {
    const alone: Measured[] = [];
    const beside: Measured[] = [];
    const logins: number[] = [];
    for (let round = 0; round < rounds; round++) {
      alone.push(await encrypts(clients, seconds));
      const people = logInAgainAndAgain(server, password);
      // The first hash starts the thread.
      await new Promise((resolve) => setTimeout(resolve, 500));
      beside.push(await encrypts(clients, seconds));
      logins.push(await people.end());
    }
    const pair = (field: keyof Measured) => [alone, beside].map((of) => short(median(of.map((each) => each[field]))));
    const name = clients === 1 ? '1 client' : `${clients} clients`;
    row(name, ...pair('p50'), ...pair('p99'), ...pair('perSecond'), short(median(logins)));
    const ratio = median(beside.map(({ p99 }, at) => p99 / (alone[at]?.p99 ?? Number.NaN)));
    goal(`encrypt's p99 beside the logins, of alone, ${name}`, ratio, 1.5, 'at most');
  }
  await server.stop();
  rmSync(home, { recursive: true });
}

/** Keeps logins going until `end` is called, which waits for the last of them and returns the number per second. */
function logInAgainAndAgain(server: Served, password: string): { end(): Promise<number> } {
  const before = performance.now();
  let done = 0;
  let going = true;
  const person = async (): Promise<void> => {
    while (going) {
      await server.ask('/auth/basic/login', { username: 'bench', password });
      done++;
    }
  };
  const people = Promise.all(Array.from({ length: atOnce }, person));
  return {
    async end() {
      const rate = done / ((performance.now() - before) / 1000);
      going = false;
      await people;
      return rate;
    },
  };
}
