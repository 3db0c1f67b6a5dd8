// A hostile hour: strangers and a neighbour's key repeat, in turn, attacks that once stopped the whole server, while
// honest clients encrypt beside them. Compares the clients' latency with and without attacks, in alternation. Run by
// hand: `node scripts/bench/hostile.ts [minutes] [one-core]`; needs `dist/kms`. The server has one core, clients and
// attackers share another; with `one-core` all of them share the first. With JSON of `Target` as its argument it is the
// attacker's process.
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeAppliance, serve } from './appliance.ts';
import { goal, median, row, short } from './figures.ts';
import { load, type Measured } from './load.ts';
import { start } from './process.ts';

interface Target {
  readonly port: number;
  /** An API key that may only encrypt with one ring. */
  readonly weak: string;
  /** An API key that may search. */
  readonly reader: string;
}

const clients = 64;
const secondsOfEach = 20;

/** @param others the core of clients and attackers; the server has core 0. */
async function measureHostile(minutes: number, others: number): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'kms-bench-'));
  const appliance = makeAppliance(join(home, 'data'));
  const server = await serve(0, appliance);
  await server.ask('/ks/keyrings', { name: 'bench' });
  const keyWith = async (...flags: string[]): Promise<string> => {
    const granted = Object.fromEntries(flags.map((flag) => [flag, true]));
    const made = await server.ask('/auth/apikey', { accountId: appliance.accountId, flags: granted });
    return JSON.parse(made).key;
  };
  const target: Target = {
    port: Number(new URL(server.url).port),
    weak: await keyWith('keyring.bench.encrypt'),
    reader: await keyWith('asset.search', 'activity.read'),
  };
  const encrypts = (): Promise<Measured> =>
    load(others, {
      url: `${server.url}/ks/encrypt`,
      headers: appliance.headers,
      body: JSON.stringify({ ringname: 'bench' }),
      clients,
      seconds: secondsOfEach,
    });
  await encrypts(); // the warm-up
  const rounds = Math.max(1, Math.round((minutes * 60) / (2 * secondsOfEach)));
  console.log(
    `\nHostile: encrypts by ${clients} clients, ${rounds} rounds of ${secondsOfEach} s alone and as many beside attacks`,
  );
  row('', 'p50 ms', 'beside', 'p99 ms', 'beside', 'encrypts/s', 'beside', 'MB');
  const alone: Measured[] = [];
  const beside: Measured[] = [];
  let megabytes = 0;
  let attacks = 0;
  for (let round = 0; round < rounds; round++) {
    alone.push(await encrypts());
    const attacker = await start(
      others,
      process.execPath,
      [import.meta.filename, JSON.stringify(target)],
      /^(ready)$/m,
    );
    let said = '';
    attacker.child.stdout?.on('data', (chunk: Buffer) => {
      said = (said + chunk).slice(-100);
    });
    beside.push(await encrypts());
    megabytes = Math.max(megabytes, server.megabytes());
    await attacker.stop();
    attacks += Number(/(\d+)\s*$/.exec(said)?.[1] ?? 0);
  }
  const pair = (field: keyof Measured) => [alone, beside].map((of) => short(median(of.map((each) => each[field]))));
  row('median', ...pair('p50'), ...pair('p99'), ...pair('perSecond'), short(megabytes));
  console.log(`attacks: ${attacks}, ${short(attacks / (rounds * secondsOfEach))} a second`);
  const ratios = beside.map(({ p99 }, at) => p99 / (alone[at]?.p99 ?? Number.NaN));
  goal("encrypt's p99 beside attacks, of alone", median(ratios), 3, 'at most');
  await server.stop();
  rmSync(home, { recursive: true });
}

/** Attacks until it is ended; prints the number of attacks twice a second. */
async function attackForEver(target: Target): Promise<void> {
  console.log('ready');
  let done = 0;
  setInterval(() => console.log(done), 500);
  const held = holdUnfinished(target.port, 200);
  process.on('SIGTERM', () => {
    for (const socket of held) socket.destroy();
    process.exit(0);
  });
  // In parallel, since waiting at one endpoint would keep the others from being tried.
  await Promise.all(
    [guesses, attacks].map(async (lane) => {
      for (;;) {
        for (const attack of lane(target)) {
          await send(target.port, attack);
          done++;
        }
      }
    }),
  );
}

/** Opens sockets without credentials that promise a body and send only a part of it. */
function holdUnfinished(port: number, count: number): Socket[] {
  return Array.from({ length: count }, () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    const head = [
      'POST /auth/basic/login HTTP/1.1',
      'Host: x',
      'Content-Type: application/json',
      'Content-Length: 16000',
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n{"username":"${'x'.repeat(8000)}`);
    return socket;
  });
}

interface Attack {
  readonly method: string;
  readonly path: string;
  readonly key?: string;
  readonly body: string;
}

function post(path: string, body: string, key?: string): Attack {
  return { method: 'POST', path, body, ...(key === undefined ? {} : { key }) };
}

let names = 0;

/** Logins with made-up names, to evict real ones from the back-off table; a known name; links and shares. */
function* guesses(): Generator<Attack> {
  for (let n = 0; n < 100; n++) yield post('/auth/basic/login', `{"username":"made up ${names++}","password":"b"}`);
  yield post('/auth/basic/login', '{"username":"admin","password":"b"}');
  yield post('/auth/user/invite-complete', '{"token":"x","password":"y"}');
  yield post('/auth/basic/reset-password-start', '{"username":"admin"}');
  yield post('/system/unseal', '{"retry":true}');
}

function* attacks({ weak, reader }: Target): Generator<Attack> {
  const parents = `{"parents":[${'1,'.repeat(520_000)}1]}`;
  const deep = `{"amount":9007199254740993,"ignored":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  const digits = `{"username":"a","password":"b","ignored":[${'9007199254740993,'.repeat(60_000)}1]}`;
  yield post('/assets/search', parents, 'x');
  yield post('/assets/search', parents, reader);
  yield post('/assets/search', parents, weak);
  yield post('/ks/encrypt', `{"ringname":"bench","asset":{"data":${deep}}}`, weak);
  yield post('/auth/search/activity', `{"props":${deep}}`, reader);
  yield post('/auth/basic/login', digits);
  yield post('/auth/basic/reset-password-complete', parents);
  yield { method: 'DELETE', path: '/auth/users/admin', key: weak, body: '' };
  yield post('/system/seal', '{}', weak);
  yield { method: 'GET', path: `/ks/hash/${'A'.repeat(15_000)}`, key: weak, body: '' };
  yield { method: 'GET', path: '/metrics', key: reader, body: '' };
  yield { method: 'GET', path: '/auth/activity?limit=10000', key: reader, body: '' };
  yield post('/auth/validate', '{"apikey":"x","activity":{"action":"keyring.encrypt"}}', reader);
}

/** Resolves once the request was answered or the connection ended. */
function send(port: number, { method, path, key, body }: Attack): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (): void => {
      socket.destroy();
      resolve();
    };
    socket.on('error', end).on('close', end).once('data', end).setTimeout(10_000, end);
    const head = [`${method} ${path} HTTP/1.1`, 'Host: x', 'Connection: close'];
    if (key !== undefined) head.push(`Authorization: Bearer ${key}`);
    if (body !== '') head.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`);
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  });
}

if (import.meta.main) {
  const argument = process.argv[2] ?? '60';
  if (argument.startsWith('{')) await attackForEver(JSON.parse(argument));
  else await measureHostile(Number(argument), process.argv[3] === 'one-core' ? 0 : 1);
}
