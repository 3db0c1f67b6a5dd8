// Posting lists and Bloom filters of a segment's index.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  decodePositions,
  encodePositions,
  findPositions,
  intersect,
  makePages,
  packPage,
  union,
  unpackPage,
} from '../../src/store/activity/postings.ts';
import { makeBloom, readBloom } from '../../src/store/activity/terms.ts';

const ascending = fc.uniqueArray(fc.nat(3000), { maxLength: 3000 }).map((list) => list.sort((a, b) => a - b));
const terms = fc.integer({ min: 0, max: 0xffff_ffff });

describe('postings', () => {
  it('come back as they went in, in at most a bit a record', () => {
    fc.assert(
      fc.property(ascending, (positions) => {
        const bytes = encodePositions(positions, 3001);
        assert.deepEqual(decodePositions(bytes), positions);
        assert.ok(bytes.length <= 1 + 376);
      }),
    );
    const large = [0, 127, 128, 255, 256, 16_383, 16_384, 2_000_000];
    assert.deepEqual(decodePositions(encodePositions(large, 2_000_001)), large);
  });

  it('are found on the pages by term', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(terms, ascending), { maxLength: 40, selector: ([term]) => term }),
        terms,
        (list, other) => {
          const postings = new Map(list);
          const pages = makePages(postings, 3001);
          const find = (term: number): number[] => {
            const page = pages.findLast((candidate) => candidate.firstTerm <= term);
            return page ? findPositions(unpackPage(packPage(page.bytes)), term) : [];
          };
          for (const [term, positions] of postings) assert.deepEqual(find(term), positions);
          if (!postings.has(other)) assert.deepEqual(find(other), []);
        },
      ),
      { numRuns: 30 },
    );
  });

  it('intersect and unite as sets do', () => {
    fc.assert(
      fc.property(ascending, ascending, (a, b) => {
        assert.deepEqual(
          intersect(a, b),
          a.filter((value) => b.includes(value)),
        );
        assert.deepEqual(
          union([a, b]),
          [...new Set([...a, ...b])].sort((x, y) => x - y),
        );
      }),
      { numRuns: 30 },
    );
    assert.deepEqual(union([]), []);
  });
});

describe('a bloom filter', () => {
  it('never denies what it holds', () => {
    fc.assert(
      fc.property(fc.array(terms, { maxLength: 600 }), (list) => {
        const may = readBloom(makeBloom(new Set(list), 200));
        for (const term of list) assert.ok(may(term));
      }),
    );
  });

  it('denies most of what it does not hold, all when empty, nothing when overfull', () => {
    const sample = Array.from({ length: 10_000 }, (_, index) => Math.imul(index + 1, 0x9e3779b1) >>> 0);
    const may = readBloom(makeBloom(new Set(sample.slice(0, 100)), 200));
    assert.ok(sample.slice(100).filter(may).length < 500);
    assert.ok(!sample.some(readBloom(makeBloom(new Set(), 200))));
    assert.equal(makeBloom(new Set(sample), 200), null);
    assert.ok(sample.every(readBloom(null)));
  });
});
