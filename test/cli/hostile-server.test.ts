// A data directory of another's making with a server of theirs at its socket: no answer is called a defect of the
// command, and none is read for ever.
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import { test } from 'node:test';
import { type Desk, desk } from './kms.ts';

const lines = [
  ...['status', 'doctor', 'keyring list', 'keyring show payroll', 'account create a', 'account list', 'apikey list'],
  ...['user list', 'user show ada', 'asset search', 'tenant list', 'tenant show t', 'tenant rekey t', 'master list'],
  ...['tenant create t --host t.example', 'master rotate', 'recovery-kit', 'seal', 'unseal', 'activity search'],
  ...['activity verify', 'activity head', 'activity export', 'key list', 'tang list', 'drill', 'metrics'],
  ...['backup create -', 'backup create out', 'encrypt --ring payroll -o x.kms', 'age recipient payroll'],
  ...['standby promote', 'user reset-second-factor ada --yes', 'tenant oidc show', 'asym create pairs'],
];

/** Runs `use` with a server at the socket of `kms-data`. */
async function withServer(answer: (response: ServerResponse) => void, use: (d: Desk) => Promise<void>): Promise<void> {
  await using d = await desk();
  await mkdir(d.path('kms-data'), { mode: 0o700 });
  const server = createServer((request, response) => {
    request.resume();
    answer(response);
  });
  await new Promise<void>((resolve) => server.listen(d.path('kms-data', 'kms.sock'), resolve));
  try {
    await use(d);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

const run = (d: Desk, line: string) =>
  d.kms(`${line} --data kms-data`, { signal: AbortSignal.timeout(30_000), stdin: 'a passphrase\n' });

const nested = {
  sealed: false,
  version: 1,
  tenants: [null],
  system: null,
  masterKey: 7,
  status: 'ready',
  data: [null],
};
const bodies = [
  ...[
    '{}',
    '[]',
    'null',
    '7',
    '"x"',
    'no JSON',
    '',
    '{"data":[{}],"pagination":null}',
    '{"findings":[{}],"sealed":true}',
  ],
  ...[JSON.stringify(nested), JSON.stringify({ ...nested, standby: null, custodians: [null], kinds: 7, heads: 7 })],
];

test('an answer of another shape is told as such', async () => {
  let body = '';
  await withServer(
    (response) => response.writeHead(200, { 'content-type': 'application/json' }).end(body),
    async (d) => {
      for (body of bodies) {
        for (const line of lines) {
          const { code, stderr } = await run(d, line);
          const said = `${line}: ${body}: ${stderr}`;
          assert.doesNotMatch(stderr, /defect of kms/, said);
          assert.ok([0, 1, 3, 4].includes(code), said);
        }
      }
    },
  );
});

for (const status of [200, 403]) {
  const deep = 1 << 20;
  for (const [what, body] of [
    ['brackets', '['.repeat(deep) + ']'.repeat(deep)],
    ['objects', '{"a":'.repeat(deep)],
    ['empty lists', `[${'[],'.repeat(4 << 20)}[]]`],
  ] as const) {
    test(`an answer of ${what} is refused before it is parsed: ${status}`, async () => {
      await withServer(
        (response) => response.writeHead(status, { 'content-type': 'application/json' }).end(body),
        async (d) => {
          for (const line of ['status', 'keyring list', 'tenant list', 'master list', 'activity head', 'seal']) {
            const { code, stderr } = await run(d, line);
            assert.match(
              stderr,
              /^kms: expected (?:an answer of kms|at most \d+ bytes) from \S+, (?:got JSON of another size or depth|got more)/,
              line,
            );
            assert.ok(code !== 0, line);
          }
        },
      );
    });
  }

  test(`an answer that never ends is read up to a limit: ${status}`, async () => {
    const piece = 'x'.repeat(1 << 20);
    let sent = 0;
    const go = (response: ServerResponse): void => {
      while (!response.destroyed) {
        sent += piece.length;
        if (!response.write(piece)) return void response.once('drain', () => go(response));
      }
    };
    await withServer(
      (response) => {
        response.writeHead(status, { 'content-type': 'application/json' }).write('{"a":"');
        go(response);
      },
      async (d) => {
        // A backup is as long as it is.
        for (const line of lines.filter((each) => !/^(?:backup|activity export)/.test(each) || status !== 200)) {
          sent = 0;
          const { code, stderr } = await run(d, line);
          assert.ok(code !== 0 || line === 'doctor', `${line}: ${stderr}`);
          assert.doesNotMatch(stderr, /interrupted|defect/, line);
          assert.ok(sent < 160 << 20, `${line}: ${sent}`);
        }
      },
    );
  });
}
