// Encodings: RFC 4648 §10 vectors, agreement with Buffer, and exactly one text for each byte string.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  fromBase64,
  fromBase64Url,
  fromHex,
  fromUtf8,
  readBase64Url,
  toBase64,
  toBase64Url,
  toHex,
  utf8,
} from '../../src/crypto/bytes.ts';

/** This file runs once more on an older engine, in a process of its own. */
const isOlder = !('fromBase64' in Uint8Array);

test('RFC 4648 vectors', () => {
  const vectors = {
    '': '',
    f: 'Zg==',
    fo: 'Zm8=',
    foo: 'Zm9v',
    foob: 'Zm9vYg==',
    fooba: 'Zm9vYmE=',
    foobar: 'Zm9vYmFy',
  };
  for (const [text, encoded] of Object.entries(vectors)) {
    assert.equal(toBase64(utf8(text)), encoded);
    assert.deepEqual(fromBase64(encoded), utf8(text));
    const url = encoded.replaceAll('=', '');
    assert.equal(toBase64Url(utf8(text)), url);
    assert.deepEqual(fromBase64Url(url), utf8(text));
  }
  assert.equal(toHex(utf8('foobar')), '666f6f626172');
});

test('every byte string has one text, which gives it back', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      assert.equal(toBase64(bytes), Buffer.from(bytes).toString('base64'));
      assert.equal(toBase64Url(bytes), Buffer.from(bytes).toString('base64url'));
      assert.deepEqual(fromBase64(toBase64(bytes)), bytes);
      assert.deepEqual(fromBase64Url(toBase64Url(bytes)), bytes);
      assert.deepEqual(fromHex(toHex(bytes)), bytes);
    }),
  );
});

test('a text that decodes is the text that its bytes encode to', () => {
  const character = fc.constantFrom(...'AQgwZ90_-+/= \n\t\r.é');
  fc.assert(
    fc.property(fc.string({ unit: character, maxLength: 12 }), (text) => {
      const plain = fromBase64(text);
      if (plain) assert.equal(toBase64(plain), text);
      const url = fromBase64Url(text);
      if (url) assert.equal(toBase64Url(url), text);
    }),
    { numRuns: 5000 },
  );
});

test('what is not canonical is refused', () => {
  const wrong = [
    'Zg',
    'Zg=',
    'Zh==',
    'Zm9=',
    'Zg==\n',
    ' Zg==',
    'Zg= =',
    'Zg==Zg==',
    '=',
    '====',
    'Zm9v====',
    'Zm-_',
    'Z',
    'Zm9v Zm9v   ',
  ];
  for (const text of wrong) assert.equal(fromBase64(text), undefined, JSON.stringify(text));
  const wrongUrl = ['Zg==', 'Zh', 'Zm9', 'Z', 'Zm9v=', 'Zg=', 'Zm+/', 'Zm9v\n', ' Zg', 'Zm9vZ', 'Zm 9v Z', 'Zm9vé'];
  for (const text of wrongUrl) assert.equal(fromBase64Url(text), undefined, JSON.stringify(text));
  for (const text of ['0', 'AB', '0g', '0x', ' 00', '00 '])
    assert.equal(fromHex(text), undefined, JSON.stringify(text));
});

test('base64url is read into an array that is there, if it fits', () => {
  const into = new Uint8Array(4).fill(9);
  assert.ok(readBase64Url('AQI', into));
  assert.deepEqual([...into], [1, 2, 9, 9]);
  assert.ok(readBase64Url('AQIDBA', into));
  assert.ok(!readBase64Url('AQIDBAU', into));
  for (const text of ['AQIDB', 'AQIDBB', 'AQI=', 'AQ D', 'AQ+/']) assert.ok(!readBase64Url(text, into), text);
});

test('UTF-8 is decoded strictly', () => {
  assert.equal(fromUtf8(utf8('grüße \u{1f511}')), 'grüße \u{1f511}');
  assert.equal(fromUtf8(Uint8Array.of(0xef, 0xbb, 0xbf, 0x61)), '\ufeffa');
  for (const bytes of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf0, 0x9f]]) {
    assert.equal(fromUtf8(Uint8Array.from(bytes)), undefined);
  }
});

test('platforms without the built-in base64 and hex make and take the same texts', { skip: isOlder }, () => {
  const engine = join(import.meta.dirname, '../docs/older-engine.mjs');
  const program = ['--import', engine, import.meta.filename];
  const { status, stdout } = spawnSync(process.execPath, program, { env: {}, encoding: 'utf8' });
  assert.equal(status, 0, stdout);
  assert.match(stdout, /pass 6\b/);
});
