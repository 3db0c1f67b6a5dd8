// `kms activity search --watch` beside an appliance in use.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import test from 'node:test';
import { createClient } from '../../src/client/client.ts';
import { type Desk, desk, type Ran } from './kms.ts';
import { servedDesk } from './served.ts';

interface Watch {
  /** Resolves once stdout and stderr together contain `text` or satisfy it. */
  until(text: string | ((all: string) => boolean)): Promise<void>;
  stop(): Promise<Ran>;
}

function watch(d: Desk, args: readonly string[], more: { env?: Record<string, string>; columns?: number } = {}): Watch {
  const end = new AbortController();
  const waiting: (() => void)[] = [];
  let all = '';
  const tell = (text: string): void => {
    all += text;
    for (const look of waiting) look();
  };
  const ran = d.kms(['activity', 'search', '--watch', '--every', '1s', ...args], {
    signal: end.signal,
    onStdout: tell,
    onStderr: tell,
    ...(more.env && { env: more.env }),
    ...(more.columns !== undefined && { tty: { stdout: true, columns: more.columns } }),
  });
  return {
    until: (wanted) =>
      Promise.race([
        new Promise<void>((resolve) => {
          const look = (): void => {
            if (typeof wanted === 'string' ? all.includes(wanted) : wanted(all)) resolve();
          };
          waiting.push(look);
          look();
        }),
        ran.then(({ code, stderr }) => assert.fail(`it ended with ${code}: ${stderr}`)),
      ]),
    stop() {
      end.abort('SIGINT');
      return ran;
    },
  };
}

const parsed = (text: string): { id: string; action: string; ringname: string; validAction: boolean }[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

for (const way of ['socket', 'network'] as const) {
  test(`over the ${way} it shows everything once, its own questions left out`, async () => {
    await using d = await servedDesk();
    const client = createClient({ baseUrl: d.url, apiKey: d.appliance.root.key });
    await d.json('keyring create first --json');
    const { args, env } = way === 'network' ? d.network() : { args: [], env: {} };
    const seeing = watch(d, ['--json', '--limit', '1', ...args], { env });
    await seeing.until('"ringname":"first"');
    const many = Array.from({ length: 250 }, (_, n) => `r${n}`);
    for (const name of many) await client.getKeyring({ ringname: name }).catch(() => undefined);
    // Another client's search must show; the watch's own must not.
    await client.searchActivity({});
    await seeing.until((all) => all.includes('"ringname":"r249"') && all.includes('activity.read'));
    await d.json('keyring create last --json');
    await seeing.until('"ringname":"last"');
    const { code, stdout, stderr } = await seeing.stop();
    assert.deepEqual([code, stderr], [0, '']);
    const records = parsed(stdout);
    assert.equal(new Set(records.map(({ id }) => id)).size, records.length);
    assert.deepEqual(
      records.filter(({ action }) => action !== 'activity.read').map(({ ringname }) => ringname),
      ['first', ...many, 'last'],
    );
    assert.equal(records.filter(({ action }) => action === 'activity.read').length, 1);
  });
}

test('filters hold, and people get a table that fits', async () => {
  await using d = await servedDesk();
  await d.json('account create svc --json');
  const key = await d.json<{ key: string; keyid: string }>('apikey create --account svc --flag keyring.a.read --json');
  const limited = createClient({ baseUrl: d.url, apiKey: key.key });
  const seeing = watch(d, ['--valid', 'false', '--ring', 'b', '--keyid', key.keyid, '--account', 'svc'], {
    columns: 100,
  });
  await seeing.until('VERDICT');
  for (const name of ['a', 'b', 'c']) {
    await limited.getKeyring({ ringname: name }).catch(() => undefined);
    await d.kms(`keyring show ${name}`);
  }
  await seeing.until('denied');
  const { code, stdout } = await seeing.stop();
  assert.equal(code, 0);
  const [titles, ...lines] = stdout.trimEnd().split('\n');
  assert.match(titles ?? '', /TIME +VERDICT +ACTION +RING +BY/);
  assert.equal(lines.length, 1);
  assert.match(
    lines[0] ?? '',
    new RegExp(`^\\d\\d:\\d\\d:\\d\\d {2}.\\[31mdenied.\\[0m +keyring\\.read +b +apik_…${key.keyid.slice(-6)} `),
  );
});

test('a server that goes away is waited for; one that refuses ends it', async () => {
  const ulid = '01jz4b8m6q3v9x2c5d7f8g9h0';
  await using d = await desk();
  const page = (...ids: string[]): object => ({
    data: ids.map((id) => ({
      id,
      keyid: 'local',
      createdAt: 0,
      props: {},
      action: 'x',
      ringname: '',
      validAction: true,
      status: 200,
    })),
    pagination: { limit: 100, count: ids.length, hasMore: false },
  });
  const answers: (readonly [number, object])[] = [
    [200, page(`act_${ulid}1`)],
    ...Array.from({ length: 4 }, () => [503, { message: 'sealed' }] as const),
    [200, page(`act_${ulid}2`, `act_${ulid}1`)],
    [401, { message: 'unknown credential' }],
  ];
  const server = createServer((request, response) => {
    const [status, body] = answers.shift() ?? [500, {}];
    request.resume().on('end', () => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
  });
  const url = await new Promise<string>((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(`http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`);
    });
  });
  const ran = await d.kms(['activity', 'search', '--watch', '--json', '--every', '1s', '--server', url], {
    env: { KMS_API_KEY: 'x' },
  });
  server.closeAllConnections();
  server.close();
  assert.equal(ran.code, 1);
  assert.deepEqual(
    parsed(ran.stdout).map(({ id }) => id),
    [`act_${ulid}2`],
  );
  assert.match(ran.stderr, /^kms: .*; trying again\nkms: it answers again\nkms: .*unknown credential.*\n$/);
});

for (const [line, code, stderr] of [
  ['--watch --all', 2, /^kms: --all and --watch exclude each other; see/],
  ['--watch --cursor x', 2, /^kms: --cursor and --watch exclude each other; see/],
  ['--watch --every 2h', 2, /^kms: --every: expected 1s to 1h; see/],
  ['--watch --every 0s', 2, /^kms: --every: expected a duration/],
  ['--every 2s', 2, /^kms: --every goes with --watch; see/],
  ['--watch', 3, /^kms: no server is running on .*; start one with `kms serve`/],
] as const) {
  test(`refused: ${line}`, async () => {
    await using d = await desk();
    await d.json('init --json');
    const ran = await d.kms(`activity search ${line}`);
    assert.deepEqual([ran.code, ran.stdout], [code, '']);
    assert.match(ran.stderr, stderr);
  });
}
