// The canonical line of an activity record, the hash chain over the lines, and the example of docs/activity-log.md.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { toBase64Url } from '../../src/crypto/bytes.ts';
import { canonicalJson } from '../../src/crypto/canonical-json.ts';
import { chainHash, genesisHash } from '../../src/store/activity/chain.ts';
import { activityLine, parseActivityLine } from '../../src/store/activity/record.ts';
import { activity } from './appliance-log.ts';

describe('the canonical line of a record', () => {
  it('has its keys in order and leaves empty props out', () => {
    assert.equal(
      activityLine(activity(1), 7),
      '{"action":"keyring.decrypt","createdAt":1700000000001,"id":"act_00000000010000000000000000","keyid":"apik_1","ringname":"ring-1","seq":7,"status":200,"validAction":true}',
    );
    const props = { b: [1, { z: 1, a: 2 }], a: 'x' };
    assert.equal(
      activityLine(activity(11, { props }), 1),
      '{"action":"keyring.decrypt","createdAt":1700000000011,"id":"act_00000000110000000000000000","keyid":"apik_4","props":{"a":"x","b":[1,{"a":2,"z":1}]},"ringname":"ring-1","seq":1,"status":403,"validAction":false}',
    );
  });

  const texts = fc.string({ unit: 'grapheme' });
  const inputs = fc.record({
    id: texts,
    createdAt: fc.maxSafeInteger(),
    keyid: texts,
    action: texts,
    ringname: texts,
    validAction: fc.boolean(),
    status: fc.integer({ min: 100, max: 599 }),
    props: fc.dictionary(texts, fc.jsonValue()),
  });

  it('is the RFC 8785 JSON of the record, and comes back as the record', () => {
    fc.assert(
      fc.property(inputs, fc.integer({ min: 1 }), (input, seq) => {
        const line = activityLine(input, seq);
        const { props, ...rest } = input;
        const shown = Object.keys(props).length === 0 ? rest : input;
        assert.equal(line, canonicalJson({ ...shown, seq }));
        const record = parseActivityLine(line);
        assert.ok(record);
        assert.equal(activityLine(record, record.seq), line);
        assert.equal(record.seq, seq);
        assert.equal(record.id, input.id);
        assert.ok(!line.includes('\n'));
      }),
    );
  });

  it('has a reporter where there is one, and is as it ever was where there is none', () => {
    const plain = activityLine(activity(1), 1);
    const reported = activityLine(activity(1, { reporter: 'user_1' }), 1);
    assert.equal(reported, plain.replace(',"ringname"', ',"reporter":"user_1","ringname"'));
    assert.equal(parseActivityLine(reported)?.reporter, 'user_1');
    assert.equal(Object.hasOwn(parseActivityLine(plain) ?? {}, 'reporter'), false);
    for (const wrong of ['1', 'null', '{}']) {
      assert.equal(parseActivityLine(reported.replace('"user_1"', wrong)), undefined);
    }
  });

  it('takes __proto__ in props as a key like any other', () => {
    const line = activityLine(activity(1, { props: JSON.parse('{"__proto__":{"a":1},"constructor":2}') }), 1);
    assert.ok(line.includes('"props":{"__proto__":{"a":1},"constructor":2}'));
    assert.ok(Object.hasOwn(parseActivityLine(line)?.props ?? {}, '__proto__'));
  });

  it('writes a lone surrogate as U+FFFD and refuses one in props', () => {
    const line = activityLine(activity(1, { action: 'a\ud800b' }), 1);
    assert.ok(line.includes('"a\ufffdb"'));
    assert.throws(() => activityLine(activity(1, { props: { a: '\ud800' } }), 1), { code: 'invalid' });
  });

  for (const text of [
    '',
    'null',
    '[]',
    '{}',
    '{"seq":1}',
    'no json',
    activityLine(activity(1), 1).replace('200', '"200"'),
  ]) {
    it(`is not ${text.slice(0, 20)}`, () => assert.equal(parseActivityLine(text), undefined));
  }
});

describe('the hash chain', () => {
  it('starts at 32 zero bytes and hashes the hash before with the line', () => {
    assert.deepEqual(genesisHash(), new Uint8Array(32));
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        fc.string({ unit: 'grapheme', maxLength: 9000 }),
        (before, line) => {
          const expected = createHash('sha256').update(before).update(line, 'utf8').digest();
          assert.deepEqual(Buffer.from(chainHash(before, line)), expected);
        },
      ),
    );
  });

  it('hashes lines longer than its buffer', () => {
    const line = 'é€😀'.repeat(5000);
    const expected = createHash('sha256').update(genesisHash()).update(line, 'utf8').digest();
    assert.deepEqual(Buffer.from(chainHash(genesisHash(), line)), expected);
  });
});

describe('the example of docs/activity-log.md', () => {
  it('has the lines and hashes of a chain', () => {
    const page = readFileSync(new URL('../../docs/activity-log.md', import.meta.url), 'utf8');
    const shown = [...page.matchAll(/^ {4}(\{"action".*\})\n {4}(\S{43})$/gm)];
    assert.equal(shown.length, 3);
    let hash = genesisHash();
    for (const [, line = '', expected] of shown) {
      const record = parseActivityLine(line) ?? assert.fail(line);
      assert.equal(activityLine(record, record.seq), line);
      hash = chainHash(hash, line);
      assert.equal(toBase64Url(hash), expected);
    }
  });
});
