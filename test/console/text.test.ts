// Free-form objects as they are typed: valid ones, and the messages about others.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { jsonText, kemText, localForm, localText, parseObject, ringTraits, utcText } from '../../src/console/text.ts';

test('what is shown can be typed', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue({ noUnicodeString: false })), (value) => {
      assert.deepEqual(parseObject(jsonText(value)), { value: JSON.parse(JSON.stringify(value)) });
    }),
  );
  assert.deepEqual(parseObject('  \n'), { value: {} });
});

test('how a ring is kept, as far as it is known', () => {
  const hybrid = 'mlkem768-x25519';
  assert.deepEqual(ringTraits({ custody: 'client', kem: 'x25519' }), ['custody client', 'X25519']);
  const offline = ringTraits({ custody: 'client', kem: hybrid, offlineDecrypt: true });
  assert.deepEqual(offline, ['custody client', 'Hybrid', 'files open offline']);
  assert.deepEqual(ringTraits({ custody: 'server' }), ['custody server']);
  assert.deepEqual(ringTraits({ offlineDecrypt: false }), []);
  assert.equal(kemText(hybrid, 'whole'), 'Hybrid: ML-KEM-768 and X25519');
});

test('what is no object, or would change, is told', () => {
  const table: readonly [text: string, problem: RegExp][] = [
    ['{', /^This is not JSON: /],
    ["{'a': 1}", /^This is not JSON: /],
    ['[1]', /^This has to be an object/],
    ['null', /^This has to be an object/],
    ['"a"', /^This has to be an object/],
    ['{"a": 12345678901234567890}', /cannot be kept exactly/],
    ['{"a": [{"b": 1e400}]}', /out of range/],
  ];
  for (const [text, problem] of table) assert.match(parseObject(text).problem ?? '', problem, text);
});

test('times are those of who reads, and UTC for who asks', () => {
  const before = process.env.TZ;
  const at = new Date('2026-07-01T20:30:05.006Z');
  try {
    for (const [zone, text] of [
      ['Asia/Kolkata', '2026-07-02 02:00:05'],
      ['America/St_Johns', '2026-07-01 18:00:05'],
      ['UTC', '2026-07-01 20:30:05'],
    ] as const) {
      process.env.TZ = zone;
      assert.equal(localText(at), text);
      assert.equal(localForm(at), `${text.replace(' ', 'T')}.006`);
      assert.equal(utcText(at), '2026-07-01 20:30:05 UTC');
    }
  } finally {
    if (before === undefined) delete process.env.TZ;
    else process.env.TZ = before;
  }
});
