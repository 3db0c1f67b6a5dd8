// Encodings: RFC 4648 §10 vectors, agreement with Buffer, and exactly one text for each byte string.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  base64ByText,
  base64UrlByText,
  bytesByHex,
  bytesByText,
  fromBase64,
  fromBase64Url,
  fromHex,
  fromUtf8,
  hexByText,
  readBase64Url,
  readByText,
  toBase64,
  toBase64Url,
  toHex,
  utf8,
} from '../../src/crypto/bytes.ts';

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

test('platforms without the built-in base64 and hex make and take the same texts', () => {
  const alphabet = fc.constantFrom(...'AQgwZ09+/-_= \n\0é');
  const texts = fc.oneof(fc.base64String({ maxLength: 60 }), fc.string({ unit: alphabet, maxLength: 9 }));
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      assert.equal(base64ByText(bytes), toBase64(bytes));
      assert.equal(base64UrlByText(bytes), toBase64Url(bytes));
      assert.equal(hexByText(bytes), toHex(bytes));
      assert.deepEqual(bytesByHex(toHex(bytes)), bytes);
      assert.deepEqual(readUrl(toBase64Url(bytes)), bytes);
    }),
  );
  const same = (text: string): void => {
    assert.deepEqual(bytesByText(text), fromBase64(text), text);
    assert.deepEqual(readUrl(text), fromBase64Url(text), text);
  };
  fc.assert(fc.property(texts, same), { numRuns: 2000 });
  for (const text of ['Zg==', 'Zh==', 'Zg=', 'Zg', 'Zh', 'Z', '', 'Zm9v', 'Zm 9v', '====', '-_-_', '-_8', '-_9'])
    same(text);
});

function readUrl(text: string): Uint8Array | undefined {
  const bytes = new Uint8Array((text.length * 3) >>> 2);
  return readByText(text, bytes) ? bytes : undefined;
}
