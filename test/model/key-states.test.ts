// States of managed keys: the table against the rules written out once more, by every state, move and use, and walks
// of many moves.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type KeyState,
  keyMoves,
  keyStates,
  movesFrom,
  stateAfter,
  stateAt,
  useProblem,
  useWarning,
} from '../../src/model/key-states.ts';
import { keyUses } from '../../src/model/key-types.ts';

/** NIST's arrows, and those of deletion. A restored key returns to where it came from. */
const arrows: ReadonlySet<string> = new Set([
  'pre-active activate active',
  'pre-active destroy destroyed',
  'active suspend suspended',
  'suspended resume active',
  'active deactivate deactivated',
  'suspended deactivate deactivated',
  'active compromise compromised',
  'suspended compromise compromised',
  'deactivated compromise compromised',
  'pre-active schedule-deletion pending-deletion',
  'active schedule-deletion pending-deletion',
  'suspended schedule-deletion pending-deletion',
  'deactivated schedule-deletion pending-deletion',
  'compromised schedule-deletion pending-deletion',
  'pending-deletion destroy destroyed',
  'pending-deletion restore suspended',
]);

const protecting = new Set(['encrypt', 'sign', 'mac', 'wrap', 'derive']);
const processing = new Set(['decrypt', 'verify', 'unwrap']);

test('every state and move: the arrows, and a reason for all that is none', () => {
  const found = new Set<string>();
  for (const state of keyStates) {
    for (const move of keyMoves) {
      const after = stateAfter(state, move, 'suspended');
      if ('state' in after) found.add(`${state} ${move} ${after.state}`);
      else assert.match(after.problem, /^the key (?:is|has) [a-z ,:-]+$/, `${state} ${move}`);
      assert.equal('state' in after, movesFrom(state).includes(move));
    }
  }
  assert.deepEqual(found, arrows);
});

test('a restored key returns to the state that it had, which is one that can be left so', () => {
  for (const former of keyStates) {
    const isLeft = arrows.has(`${former} schedule-deletion pending-deletion`);
    assert.deepEqual(
      stateAfter('pending-deletion', 'restore', former),
      isLeft ? { state: former } : { problem: 'the key has no state to which it can return' },
    );
  }
  assert.ok('problem' in stateAfter('pending-deletion', 'restore', undefined));
});

/** Uses of a state by the rules' text. */
function mayUse(state: KeyState, use: string): boolean {
  if (state === 'active') return true;
  if (state === 'deactivated' || state === 'compromised') return !protecting.has(use);
  return false;
}

test('every state of key and version, and use: both states must allow it', () => {
  for (const use of keyUses) {
    for (const key of keyStates) {
      assert.equal(useProblem(use, { key }) === undefined, mayUse(key, use), `${key} ${use}`);
      for (const version of keyStates) {
        const problem = useProblem(use, { key, version });
        assert.equal(problem === undefined, mayUse(key, use) && mayUse(version, use), `${key} ${version} ${use}`);
        const culprit = mayUse(key, use) ? 'this version of the key' : 'the key';
        if (problem !== undefined)
          assert.match(problem, new RegExp(`^${culprit} is .*, so it cannot ${use === 'mac' ? 'make MACs' : use}\\b`));
      }
    }
  }
});

test('what is pending deletion is said in the words that programs look for', () => {
  for (const use of keyUses) assert.match(useProblem(use, { key: 'pending-deletion' }) ?? '', /is pending deletion/);
});

test('results of deactivated and compromised keys come with a warning', () => {
  for (const use of keyUses) {
    for (const key of keyStates) {
      for (const version of keyStates) {
        if (useProblem(use, { key, version }) !== undefined) continue;
        const states = [key, version];
        const expected = protecting.has(use)
          ? undefined
          : (['compromised', 'deactivated'] as const).find((state) => states.includes(state));
        const warning = useWarning(use, { key, version });
        if (expected === undefined) assert.equal(warning, undefined, `${key} ${version} ${use}`);
        else {
          const whose = key === expected ? 'the key' : 'this version of the key';
          assert.match(warning ?? '', new RegExp(`^${whose} is ${expected}: `));
          const ofSecret = useWarning(use, { key, version, isSecret: true });
          assert.match(ofSecret ?? '', new RegExp(`^${whose.replace('key', 'secret')} is ${expected}: `));
        }
      }
    }
  }
  assert.ok([...protecting, ...processing, 'export'].every((use) => keyUses.includes(use as 'export')));
});

test('walks: what was compromised, deactivated or destroyed stays so, whatever is asked for', () => {
  const step = fc.constantFrom(...keyMoves);
  fc.assert(
    fc.property(
      fc.constantFrom('pre-active' as const, 'active' as const),
      fc.array(step, { maxLength: 30 }),
      (first, steps) => {
        let state: KeyState = first;
        let former: KeyState | undefined;
        const past = new Set<KeyState>([state]);
        for (const move of steps) {
          const after = stateAfter(state, move, former);
          if ('problem' in after) continue;
          if (after.state === 'pending-deletion') former = state;
          state = after.state;
          past.add(state);
          const protects = [...protecting].some((use) => useProblem(use as 'encrypt', { key: state }) === undefined);
          if (past.has('compromised') || past.has('deactivated')) assert.ok(!protects, steps.join(' '));
          if (past.has('compromised')) assert.ok(!['active', 'suspended', 'deactivated'].includes(state));
          if (past.has('destroyed')) assert.equal(state, 'destroyed');
          if (!past.has('active')) assert.ok(!protects);
        }
      },
    ),
    { numRuns: 2000 },
  );
});

test('dates move a key by themselves, once and in one direction', () => {
  const date = fc.option(fc.nat(100), { nil: undefined });
  fc.assert(
    fc.property(
      fc.constantFrom(...keyStates),
      fc.record({ activateAt: date, deactivateAt: date, destroyAt: date }),
      fc.nat(100),
      fc.nat(100),
      (state, dates, now, later) => {
        const then = stateAt(state, dates, now);
        assert.equal(stateAt(then, dates, now), then, 'at rest');
        assert.equal(stateAt(then, dates, now + later), stateAt(state, dates, now + later), 'whenever looked at');
        // Each change is a move that somebody could have asked for, or two.
        const isMove = (from: KeyState, to: KeyState): boolean =>
          from === to || keyMoves.some((move) => arrows.has(`${from} ${move} ${to}`));
        assert.ok(isMove(state, then) || (isMove(state, 'active') && isMove('active', then)), `${state} ${then}`);
      },
    ),
    { numRuns: 2000 },
  );
  assert.equal(stateAt('pre-active', { activateAt: 5 }, 4), 'pre-active');
  assert.equal(stateAt('pre-active', { activateAt: 5 }, 5), 'active');
  assert.equal(stateAt('pre-active', { activateAt: 5, deactivateAt: 6 }, 6), 'deactivated');
  assert.equal(stateAt('pre-active', { deactivateAt: 6 }, 6), 'pre-active');
  assert.equal(stateAt('suspended', { deactivateAt: 6 }, 6), 'deactivated');
  assert.equal(stateAt('compromised', { deactivateAt: 6 }, 6), 'compromised');
  assert.equal(stateAt('pending-deletion', { deactivateAt: 1, destroyAt: 6 }, 5), 'pending-deletion');
  assert.equal(stateAt('pending-deletion', { destroyAt: 6 }, 6), 'destroyed');
});
