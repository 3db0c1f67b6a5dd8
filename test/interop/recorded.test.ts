// Recorded requests of real clients (`scripts/interop --record` writes them) are sent again unchanged to a served
// appliance: the status must match, and every field that those clients read.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Initialised } from '../../src/appliance/init.ts';
import { serve } from '../../src/server/serve.ts';
import { clients } from './clients/all.ts';
import { type Recording, Replay, readsOf } from './recording.ts';

const dir = mkdtempSync(join(tmpdir(), 'kms-interop-'));
let made: Initialised | undefined;
const serving = await serve({
  data: join(dir, 'data'),
  listen: '127.0.0.1:0',
  vaultListen: '127.0.0.1:0',
  logLevel: 'silent',
  onInitialised(first) {
    made = first;
  },
});
after(async () => {
  await serving.close();
  rmSync(dir, { recursive: true, force: true });
});
const { key, keyid } = made?.apiKey ?? assert.fail('a new appliance has a root key');
const accountId = made?.accountId;

interface Answered {
  readonly status: number;
  readonly text: string;
  readonly type: string | undefined;
}

/** Sends only the recorded headers, and those that every request needs. */
function asked(
  origin: string,
  ask: string,
  headers: Readonly<Record<string, string>>,
  body: string,
): Promise<Answered> {
  const [method = '', url = ''] = ask.split(' ');
  return new Promise((resolve, reject) => {
    const sent = request(`${origin}${url}`, { method, headers }, async (answer) => {
      let text = '';
      for await (const chunk of answer) text += chunk;
      resolve({ status: answer.statusCode ?? 0, text, type: answer.headers['content-type'] });
    });
    sent.on('error', reject).end(body);
  });
}

async function token(flags: readonly string[]): Promise<string> {
  const granted = Object.fromEntries(flags.map((flag) => [flag, true]));
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const { text } = await asked(
    serving.url,
    'POST /auth/apikey',
    headers,
    JSON.stringify({ accountId, flags: granted }),
  );
  return JSON.parse(text).key;
}

/** Repeats a command that changed a ring during the recording. */
async function command(text: string): Promise<void> {
  const [, verb, name, ...options] = text.split(' ');
  const body = { type: options[options.indexOf('--type') + 1] ?? '', derived: options.includes('--derived') };
  const sent = options.includes('--type') ? body : { derived: body.derived };
  const path = verb === 'rotate' ? `keys/${name}/rotate` : `keys/${name}`;
  assert.ok(verb === 'create' || verb === 'rotate', text);
  const told = await asked(address(), `PUT /v1/transit/${path}`, { 'X-Vault-Token': key }, JSON.stringify(sent));
  assert.equal(told.status, 204, `${text}: ${told.text}`);
}

const address = (): string => serving.vaultAddress ?? assert.fail('an address for transit');

const directory = new URL('recorded/', import.meta.url);
const files = readdirSync(directory).filter((name) => name.endsWith('.json'));
test('there are recordings', () => assert.ok(files.length >= 7, String(files)));

test('the page on interoperability tells of every client', () => {
  const page = readFileSync(new URL('../../docs/interoperability.md', import.meta.url), 'utf8');
  const told = [...page.matchAll(/^ok +(\S+) /gm)].map(([, name]) => name);
  assert.deepEqual(
    [...new Set(told)],
    clients.map(({ name }) => name),
    'let scripts/interop run the new ones, and write their lines into docs/interoperability.md',
  );
});

for (const file of files) {
  const { client, version, steps }: Recording = JSON.parse(readFileSync(new URL(file, directory), 'utf8'));
  test(`${client} ${version}`, async () => {
    const replay = new Replay();
    replay.set('root', key);
    replay.set('root id', keyid);
    let count = 0;
    for (const [n, step] of steps.entries()) {
      if ('flags' in step) replay.set(step.token, await token(step.flags));
      else if ('kms' in step) await command(step.kms);
      else {
        const { ask, headers, body = '', status, reads } = step;
        const filled = Object.entries(headers).map(([name, value]) => [name, replay.fill(value)]);
        const told = await asked(address(), ask, Object.fromEntries(filled), replay.fill(body));
        const where = `${file}, step ${n}: ${ask}: ${told.text}`;
        assert.equal(told.status, status, where);
        if (told.text !== '') assert.equal(told.type, 'application/json', where);
        if (reads) assert.equal(replay.difference(reads, readsOf(ask, told.status, told.text)), undefined, where);
        count++;
      }
    }
    assert.ok(count > 0);
  });
}
