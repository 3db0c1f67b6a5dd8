// Options of a client that can't be sent in requests: they are refused when it is created, and no error repeats a
// credential.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { type ClientOptions, createClient } from '../../src/client/client.ts';
import { KmsError } from '../../src/errors.ts';
import { sampleAnswerTo } from '../support/answers.ts';

const key = 'kms_secret';
const unsendable = [
  {},
  { baseUrl: '' },
  { baseUrl: 'kms.example' },
  { baseUrl: 'kms.example:8080' },
  { baseUrl: 'ftp://kms.example' },
  { baseUrl: `https://me:${key}@kms.example` },
  { baseUrl: 'https://kms.example/?x=1' },
  { baseUrl: 'https://kms.example', apiKey: '' },
  { baseUrl: 'https://kms.example', apiKey: `${key}\n${key}` },
  { baseUrl: 'https://kms.example', apiKey: `${key}漢` },
  { baseUrl: 'https://kms.example', headers: { 'a name': key } },
  { baseUrl: 'https://kms.example', headers: { name: `${key}\nx` } },
];

for (const options of unsendable) {
  test(`refused before anything is sent, and never repeated: ${JSON.stringify(options)}`, () => {
    // The first values are possible only in untyped programs.
    assert.throws(
      () => createClient(options as ClientOptions),
      (error) => {
        assert.ok(error instanceof KmsError);
        assert.equal(error.code, 'invalid');
        assert.doesNotMatch(inspect(error), new RegExp(key));
        return true;
      },
    );
  });
}

test('the end of a line behind an API key is none of it, and it goes before a header of the same name', async () => {
  const seen: (string | null)[] = [];
  const client = createClient({
    baseUrl: 'https://kms.example',
    apiKey: `${key}\n`,
    headers: { Authorization: 'Basic eDp5', 'Content-Type': 'text/plain', 'X-Of-Mine': '1' },
    fetch: async (request) => {
      seen.push(...['authorization', 'content-type', 'x-of-mine'].map((name) => request.headers.get(name)));
      return sampleAnswerTo(request);
    },
  });
  await client.createAccount({ uid: 'a' });
  assert.deepEqual(seen, [`Bearer ${key}`, 'application/json', '1']);
});

test('what has no form in JSON is said so and never sent', async () => {
  const sent: string[] = [];
  const client = createClient({
    baseUrl: 'https://kms.example',
    fetch: async ({ url }) => {
      sent.push(url);
      return Response.json({});
    },
  });
  const circle: Record<string, unknown> = {};
  circle.circle = circle;
  for (const props of [circle, { big: 1n }]) {
    await assert.rejects(client.createAccount({ uid: 'a', props }), { code: 'invalid' });
  }
  assert.deepEqual(sent, []);
});
