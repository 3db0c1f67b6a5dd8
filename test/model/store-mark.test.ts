// Marks of one history never look like a fork, in whatever order they are compared; marks of two histories do, as far
// back as runs are kept.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatMark, isFork, type Mark, parseMark, runsKept, withRun } from '../../src/model/store-mark.ts';

let tags = 0;
const newTag = (): string => (++tags).toString(16).padStart(16, '0');

/** Every mark visible in a history that begins at `start`; each length is a run with that many transactions. */
function lived(start: Mark, lengths: readonly number[]): Mark[] {
  const marks = [start];
  let { sequence, runs } = start;
  for (const length of lengths) {
    runs = withRun(runs, { from: sequence, tag: newTag() });
    for (let n = 0; n < length; n++) marks.push({ sequence: ++sequence, runs });
  }
  return marks;
}

const none: Mark = { sequence: 0, runs: [] };
const lengths = (minLength: number, maxLength: number) =>
  fc.array(fc.integer({ min: 1, max: 4 }), { minLength, maxLength });

test('one history is no fork', () => {
  fc.assert(
    fc.property(lengths(0, 20), (all) => {
      const marks = lived(none, all);
      for (const a of marks) for (const b of marks) assert.ok(!isFork(a, b), `${formatMark(a)} ${formatMark(b)}`);
    }),
    { numRuns: 60 },
  );
});

test('two histories are, for all that was seen behind where they part, while the runs kept reach there', () => {
  fc.assert(
    fc.property(
      lengths(1, 6),
      lengths(1, runsKept - 1),
      lengths(1, runsKept - 1),
      fc.nat(),
      (before, one, other, at) => {
        const common = lived(none, before);
        const parting = common[at % common.length] ?? none;
        const left = lived(parting, one).slice(1);
        const right = lived(parting, other).slice(1);
        for (const a of left)
          for (const b of right) assert.ok(isFork(a, b) && isFork(b, a), `${formatMark(a)} ${formatMark(b)}`);
      },
    ),
    { numRuns: 60 },
  );
});

test('what lies further back than the runs that are kept is not compared', () => {
  const seen = lived(none, [5]).at(-1) ?? none;
  const parted = lived(none, [seen.sequence, ...Array(runsKept).fill(1)]).at(-1) ?? none;
  assert.ok(!isFork(seen, parted));
});

test('as text, and back', () => {
  for (const mark of [none, ...lived(none, [1, 2, 3])]) assert.deepEqual(parseMark(formatMark(mark)), mark);
  const tag = '0123456789abcdef';
  for (const wrong of [
    '',
    'x',
    '-1',
    '1.',
    '1.0',
    `1.0-${tag}.`,
    `5.2-${tag}.3-${tag}`,
    `5.5-${tag}`,
    '5.0-0123',
    '5.0-0123456789ABCDEF',
  ]) {
    assert.equal(parseMark(wrong), undefined, wrong);
  }
});
