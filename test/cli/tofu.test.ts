// `kms tofu-key`, with exactly the input that OpenTofu gives a key provider, and read as strictly as OpenTofu reads.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import test from 'node:test';
import fc from 'fast-check';
import { newTofuMetadata, readTofuInput, tofuAnswer, tofuKeyOf } from '../../src/client/tofu-keys.ts';
import { KmsError } from '../../src/errors.ts';
import { hex } from '../support/vectors.ts';
import type { Ran, RunOptions } from './kms.ts';
import { type ServedDesk, servedDesk } from './served.ts';

interface Answer {
  readonly keys: { readonly encryption_key: string; readonly decryption_key?: string };
  readonly meta: { readonly external_data: Readonly<Record<string, unknown>> };
}

/** Parses as OpenTofu's `provider.go` does: a header line, then one JSON document without unknown fields. */
function answerIn({ code, stdout, stderr }: Ran): Answer {
  assert.deepEqual([code, stderr], [0, '']);
  const [first = '', ...rest] = stdout.split('\n');
  assert.deepEqual(JSON.parse(first), { magic: 'OpenTofu-External-Key-Provider', version: 1 });
  const answer = JSON.parse(rest.join('\n'));
  assert.deepEqual(Object.keys(answer), ['keys', 'meta']);
  assert.deepEqual(Object.keys(answer.meta), ['external_data']);
  for (const [name, key] of Object.entries(answer.keys)) {
    assert.match(name, /^(?:en|de)cryption_key$/);
    assert.equal(Buffer.from(String(key), 'base64').length, 32);
  }
  return answer;
}

async function withRing(): Promise<ServedDesk> {
  const d = await servedDesk();
  await d.json('keyring create infra --json');
  return d;
}

const ask = (d: ServedDesk, input: unknown, options: RunOptions = {}) =>
  d.kms('tofu-key --ring infra', { stdin: JSON.stringify(input), ...options });

test('each run has a new key, and the one of the state before', async () => {
  await using d = await withRing();
  const first = answerIn(await ask(d, null));
  assert.equal(first.keys.decryption_key, undefined);
  const second = answerIn(await ask(d, first.meta));
  assert.equal(second.keys.decryption_key, first.keys.encryption_key);
  assert.notEqual(second.keys.encryption_key, first.keys.encryption_key);
  // After a rotation, with the metadata in another order, as Go's JSON may have them.
  await d.kms('keyring rotate infra');
  const { external_data: data } = second.meta;
  const turned = Object.fromEntries(Object.entries(data).reverse());
  assert.equal(answerIn(await ask(d, { external_data: turned })).keys.decryption_key, second.keys.encryption_key);
  // OpenTofu 1.10's way to pass no metadata.
  assert.equal(answerIn(await ask(d, { external_data: null })).keys.decryption_key, undefined);
});

test('two flags are enough, and another ring may have the state before', async () => {
  await using d = await withRing();
  await d.json('keyring create older --json');
  const old = answerIn(await d.kms('tofu-key --ring older', { stdin: 'null' }));
  const { args, env } = d.network(
    (await d.appliance.keyWith('keyring.infra.encrypt', 'keyring.infra.decrypt', 'keyring.older.decrypt')).key,
  );
  const command = [...args, 'tofu-key', '--ring', 'infra'];
  const next = answerIn(await d.kms(command, { stdin: JSON.stringify(old.meta), env }));
  assert.equal(next.keys.decryption_key, old.keys.encryption_key);
  const denied = await d.kms([...args, 'tofu-key', '--ring', 'older'], { stdin: 'null', env });
  assert.equal(denied.code, 1);
  assert.match(denied.stderr, /^kms: [^\n]*keyring\.[^\n]*encrypt[^\n]*\n$/);
});

test('whatever is wrong is one line, and no key is told', async () => {
  await using d = await withRing();
  const { meta } = answerIn(await ask(d, null));
  const { external_data: data } = meta;
  const expected = (got: string) =>
    new RegExp(`^kms: expected null or an object with external_data alone on stdin, got ${got}(\\n|;)`);
  const wrong: [input: string | Uint8Array, said: RegExp][] = [
    ['', /expected what OpenTofu says/],
    ['{', /expected what OpenTofu says/],
    ['null null', /expected what OpenTofu says/],
    ['\ufeffnull', /expected what OpenTofu says/],
    [Buffer.from('{"external_data":{"version":1,"header":"\xff"}}', 'latin1'), /expected what OpenTofu says/],
    ['[]', expected('a list')],
    ['7', expected('a number')],
    ['"null"', expected('a string')],
    ['{}', expected('an object without it')],
    ['{"other":1}', expected('an object without it')],
    ['{"keys":{},"meta":{}}', /an object without it; this is an answer of the command/],
    [JSON.stringify({ ...meta, other: null }), expected('one with other fields beside it')],
    ['{"external_data":null,"version":1}', expected('one with other fields beside it')],
    ['{"external_data":"x"}', expected('one with a string in it')],
    ['{"external_data":[]}', expected('one with a list in it')],
    ['{"external_data":false}', expected('one with a boolean in it')],
    ['{"external_data":{}}', /was not made by this program/],
    [JSON.stringify({ external_data: { ...data, version: '1' } }), /was not made by this program/],
    [JSON.stringify({ external_data: { ...data, header: null } }), /was not made by this program/],
    [JSON.stringify({ external_data: { ...data, version: 2 } }), /version 2.*use a newer version/],
    [JSON.stringify({ external_data: { ...data, salt: 'AAAA' } }), /was not made by this program/],
    [JSON.stringify({ external_data: { other: 'provider' } }), /was not made by this program/],
    [JSON.stringify({ external_data: { ...data, header: `${data.header}A` } }), /header/],
    [`"${'x'.repeat(70_000)}"`, /at most 65536 bytes/],
  ];
  const refused = async (stdin: string | Uint8Array, said: RegExp, options: RunOptions = {}, code = 1) => {
    const ran = await d.kms('tofu-key --ring infra', { stdin, ...options });
    assert.equal(ran.code, code, ran.stderr);
    assert.match(ran.stderr, /^kms: [^\n]+\n$/);
    assert.match(ran.stderr, said);
    assert.doesNotMatch(ran.stdout, /key"/);
  };
  for (const [stdin, said] of wrong) await refused(stdin, said);
  await refused('null', /cannot reach/, { env: { KMS_SERVER: 'http://127.0.0.1:1', KMS_API_KEY: 'x' } }, 3);
  await rm(d.path('config'), { recursive: true });
  await refused('null', /cannot read the private key/);
});

test('metadata of version 1 lead to the same key for ever', () => {
  const frozen = JSON.parse(readFileSync(new URL('../compat/tofu-1.json', import.meta.url), 'utf8'));
  const metadata = readTofuInput(Buffer.from(JSON.stringify(frozen.meta))) ?? assert.fail('none');
  const key = hex(frozen.ringKey);
  assert.equal(Buffer.from(tofuKeyOf(key, metadata)).toString('base64'), frozen.key);
  const counted = (length: number) => Uint8Array.from({ length }, (_, i) => i);
  assert.deepEqual(newTofuMetadata(metadata.header, counted), metadata);
  assert.equal(readTofuInput(Buffer.from('null')), undefined);
  const answer = JSON.parse(tofuAnswer(key, undefined, metadata));
  assert.deepEqual(answer.meta, frozen.meta);
});

test('any input is metadata, none, or refused', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      try {
        readTofuInput(Buffer.from(text));
      } catch (error) {
        assert.ok(error instanceof KmsError && error.code === 'invalid', String(error));
      }
    }),
  );
});
