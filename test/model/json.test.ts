// Containment of JSON values, as searches by props use it, and how deep they nest.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { containing, nestsWithin } from '../../src/model/json.ts';

const json = (text: string): unknown => JSON.parse(text);

describe('containing', () => {
  const table: [value: string, wanted: string, contains: boolean][] = [
    ['{}', '{}', true],
    ['{"a":1}', '{}', true],
    ['{"a":1,"b":2}', '{"a":1}', true],
    ['{"a":1}', '{"a":2}', false],
    ['{"a":1}', '{"b":1}', false],
    ['{"a":1}', '{"a":"1"}', false],
    ['{"a":null}', '{"a":null}', true],
    ['{}', '{"a":null}', false],
    ['{"a":{"b":{"c":1,"d":2},"e":3}}', '{"a":{"b":{"c":1}}}', true],
    ['{"a":{"b":1}}', '{"a":{}}', true],
    ['{"a":1}', '{"a":{}}', false],
    ['{"a":[]}', '{"a":{}}', false],
    ['{"a":{}}', '{"a":[]}', false],
    ['{"a":[1,2]}', '{"a":[1,2]}', true],
    ['{"a":[1,2]}', '{"a":[1]}', false],
    ['{"a":[1,2]}', '{"a":[2,1]}', false],
    ['{"a":[{"b":1,"c":2}]}', '{"a":[{"b":1}]}', false],
    ['{"a":[{"b":1,"c":2}]}', '{"a":[{"c":2,"b":1}]}', true],
    ['{"a":true}', '{"a":1}', false],
    ['{"a":-0}', '{"a":0}', true],
    ['{"a":1e2}', '{"a":100}', true],
    ['{}', '{"constructor":{}}', false],
    ['{}', '{"__proto__":{}}', false],
    ['{}', '{"toString":{}}', false],
    ['{"__proto__":{"x":1}}', '{"__proto__":{"x":1}}', true],
    ['{"__proto__":{"x":1}}', '{"x":1}', false],
    ['{"constructor":{"x":1,"y":2}}', '{"constructor":{"y":2}}', true],
    ['[1]', '{}', false],
    ['null', '{}', false],
    ['null', 'null', true],
  ];
  for (const [value, wanted, contains] of table) {
    it(`${value} ${contains ? 'contains' : 'does not contain'} ${wanted}`, () => {
      assert.equal(containing(json(wanted))(json(value)), contains);
    });
  }

  it('holds for every value and itself', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        assert.ok(containing(json(text))(json(text)));
      }),
    );
  });
});

describe('nestsWithin', () => {
  const deep = (levels: number): unknown => json(`${'{"a":['.repeat(levels / 2)}${']}'.repeat(levels / 2)}`);

  it('counts objects and lists alike, of the deepest branch', () => {
    for (const value of ['1', 'null', '"{"']) assert.equal(nestsWithin(json(value), 0), true);
    assert.equal(nestsWithin({}, 0), false);
    assert.equal(nestsWithin({}, 1), true);
    for (const levels of [2, 10, 32]) {
      assert.equal(nestsWithin({ a: 1, b: deep(levels) }, levels + 1), true);
      assert.equal(nestsWithin({ b: deep(levels), c: [[]] }, levels), false);
    }
  });

  it('does not recurse', () => {
    assert.equal(nestsWithin(deep(20_000), 32), false);
    assert.equal(nestsWithin(deep(20_000), 20_000), true);
  });
});
