// Permission flags: what each grants and does not, which flags cover others, and which rings a set of flags names.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KmsError } from '../../src/errors.ts';
import {
  checkFlags,
  flagName,
  flagsOfText,
  isKnownFlag,
  knownFlags,
  parseFlags,
  plainActions,
  ringActions,
  ringsNamed,
} from '../../src/model/flags.ts';

const flags = (...names: string[]) => parseFlags(Object.fromEntries(names.map((name) => [name, true])));

const rings = ['payroll', 'pay.roll', 'create', 'read', 'a.*'];

/**
 * Every action as the pipeline asks for it: `keyring.create`, `keyring.encrypt payroll`, `keyring.encrypt ?` (no ring
 * known).
 */
const questions = [
  ...plainActions,
  ...[...ringActions].flatMap((action) => [...rings, '?'].map((ring) => `${action} ${ring}`)),
];

function granted(...names: string[]): string[] {
  const set = flags(...names);
  return questions.filter((question) => {
    const [action = '', ring] = question.split(' ');
    return ring === undefined ? set.allows(action) : set.allows(action, ring === '?' ? null : ring);
  });
}

const all = (pattern: RegExp) => questions.filter((question) => pattern.test(question));

test('each form of flag grants what it says and nothing else', () => {
  const matrix: [string, RegExp][] = [
    ['*', /./],
    ['keyring.*', /^keyring\./],
    ['asym.*', /^asym\./],
    ['keyring.*.*', /^keyring\..* /],
    ['keyring.*.rotate', /^keyring\.rotate /],
    ['keyring.payroll.*', /^keyring\..* payroll$/],
    ['keyring.payroll.rotate', /^keyring\.rotate payroll$/],
    ['keyring.pay.roll.rotate', /^keyring\.rotate pay\.roll$/],
    ['KEYRING.Payroll.Rotate', /^keyring\.rotate payroll$/],
    ['keyring.create.read', /^keyring\.read create$/],
    ['keyring.create', /^keyring\.create$/],
    ['keyring.list', /^keyring\.list$/],
    ['asym.payroll.read', /^asym\.read payroll$/],
    ['asym.*.rotate', /^asym\.rotate /],
    ['user.*', /^user\./],
    ['user.read', /^user\.read$/],
    ['asset.delete', /^asset\.delete$/],
    ['system.backup', /^system\.backup$/],
    ['apikey.*', /^apikey\./],
  ];
  for (const [flag, pattern] of matrix) assert.deepEqual(granted(flag), all(pattern), flag);
});

test('look-alikes grant nothing', () => {
  const names = ['', '.', '..', '*.*', '*.read', '*.*.*', 'keyring', 'keyring.', 'keyring.payroll', 'keyring..read'];
  names.push(
    'keyring.pay*.read',
    'keyring.read',
    'keyring.encrypt',
    'user',
    'user.',
    'user.*.*',
    'users.read',
    ' *',
    '**',
  );
  names.push(
    'keyring.payroll.read.',
    '.keyring.payroll.read',
    'keyring.payroll.',
    '__proto__',
    'constructor',
    'user.*read',
  );
  for (const name of names) assert.deepEqual(granted(name), [], name);
});

test('only true grants', () => {
  for (const value of [false, 1, 'true', null, {}, [], undefined])
    assert.deepEqual(parseFlags({ '*': value }).names, []);
  assert.deepEqual(parseFlags({ A: true, a: false }).names, ['a']);
  assert.deepEqual(parseFlags(JSON.parse('{"__proto__": true}')).names, ['__proto__']);
});

test('some ring is enough where the request names none', () => {
  assert.ok(flags('keyring.payroll.read').allowsSome('keyring.read'));
  assert.ok(flags('keyring.payroll.*').allowsSome('keyring.read'));
  assert.ok(flags('keyring.*.read').allowsSome('keyring.read'));
  assert.ok(flags('user.read').allowsSome('user.read'));
  for (const name of ['keyring.payroll.encrypt', 'asym.payroll.read', 'keyring..read', 'keyring.create', 'user.*']) {
    assert.equal(flags(name).allowsSome('keyring.read'), false, name);
  }
});

test('coverage is exact', () => {
  const covered: [string, string][] = [
    ['*', '*'],
    ['*', 'anything at all'],
    ['keyring.*', 'keyring.*'],
    ['keyring.*', 'keyring.*.*'],
    ['keyring.*', 'keyring.create'],
    ['keyring.*', 'keyring.payroll.rotate'],
    ['keyring.*.*', 'keyring.payroll.rotate'],
    ['keyring.*.*', 'keyring.*.rotate'],
    ['keyring.*.*', 'keyring.payroll.*'],
    ['keyring.*.rotate', 'keyring.pay.roll.rotate'],
    ['keyring.payroll.*', 'keyring.payroll.rotate'],
    ['keyring.payroll.*', 'Keyring.Payroll.custom'],
    ['user.*', 'user.read'],
    ['user.*', 'user.*'],
    ['billing.*', 'billing.close'],
    ['my own', 'My Own'],
  ];
  for (const [held, wanted] of covered)
    assert.equal(flags(held).lacks(flags(wanted)), undefined, `${held} > ${wanted}`);
  const lacked: [string, string][] = [
    ['keyring.*', '*'],
    ['keyring.*', 'asym.payroll.read'],
    ['keyring.*.*', 'keyring.create'],
    ['keyring.*.*', 'keyring.list'],
    ['keyring.*.*', 'keyring.*'],
    ['keyring.*.rotate', 'keyring.*.*'],
    ['keyring.*.rotate', 'keyring.payroll.*'],
    ['keyring.payroll.*', 'keyring.*.rotate'],
    ['keyring.payroll.*', 'keyring.pay.roll.rotate'],
    ['keyring.payroll.rotate', 'keyring.payroll.*'],
    ['user.read', 'user.*'],
    ['user.*', 'users.read'],
    ['my', 'my own'],
    ['billing.a.*', 'billing.a.b'],
    ['*.*', 'user.read'],
  ];
  for (const [held, wanted] of lacked) {
    assert.equal(flags(held).lacks(flags(wanted)), wanted.toLowerCase(), `${held} > ${wanted}`);
  }
  assert.equal(flags().lacks(flags()), undefined);
  assert.equal(flags('user.read').lacks(flags('user.read', 'user.create', 'user.delete')), 'user.create');
});

const segment = fc.constantFrom(
  '*',
  'keyring',
  'asym',
  'key',
  'tang',
  'user',
  'payroll',
  'pay',
  'roll',
  'read',
  'rotate',
  'create',
  'x',
  '',
);
const flagNames = fc.array(segment, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('.'));
const sets = fc.array(flagNames, { maxLength: 4 }).map((names) => flags(...names));

test('who covers a set may do all that the set may', () => {
  fc.assert(
    fc.property(sets, sets, (held, wanted) => {
      if (held.lacks(wanted) !== undefined) return;
      for (const question of questions) {
        const [action = '', ring] = question.split(' ');
        const asked = ring === '?' ? null : ring;
        if (wanted.allows(action, asked)) assert.ok(held.allows(action, asked), question);
        if (wanted.allowsSome(action)) assert.ok(held.allowsSome(action), question);
      }
    }),
    { numRuns: 3000, seed: 11 },
  );
});

test('who lacks a known flag may not do what it grants', () => {
  const known = fc.constantFrom(...knownFlags.map((name) => name.replace('<ringname>', 'payroll')));
  fc.assert(
    fc.property(sets, known, (held, name) => {
      const wanted = flags(name);
      if (held.lacks(wanted) === undefined) return;
      const allowed = questions.filter((question) => {
        const [action = '', ring] = question.split(' ');
        return wanted.allows(action, ring) && !held.allows(action, ring);
      });
      assert.ok(name === '*' || allowed.length > 0, name);
    }),
    { numRuns: 2000, seed: 12 },
  );
});

test('coverage goes on from set to set', () => {
  fc.assert(
    fc.property(sets, sets, sets, (a, b, c) => {
      assert.equal(a.lacks(a), undefined);
      if (a.lacks(b) === undefined && b.lacks(c) === undefined) assert.equal(a.lacks(c), undefined);
    }),
    { numRuns: 3000, seed: 13 },
  );
});

test('the rings that a set names', () => {
  const named: [string, string[]][] = [
    ['keyring.payroll.read', ['payroll']],
    ['keyring.Pay.Roll.*', ['pay.roll']],
    ['keyring.payroll.custom', ['payroll']],
    ['keyring.*.read', ['*']],
    ['keyring.*.*', ['*']],
    ['keyring.*', ['*']],
    ['*', ['*']],
    ['keyring.*.custom', []],
    ['keyring.create', []],
    ['keyring.payroll', []],
    ['asym.payroll.read', []],
    ['asym.*', []],
    ['user.*', []],
  ];
  for (const [name, expected] of named) assert.deepEqual(ringsNamed(flags(name)), expected, name);
  assert.deepEqual(ringsNamed(parseFlags({ 'keyring.a.read': false, 'keyring.b.read': true })), ['b']);
});

test('the flag of an action, with and without a ring', () => {
  assert.equal(flagName('keyring.encrypt', 'pay.roll'), 'keyring.pay.roll.encrypt');
  assert.equal(flagName('asym.read'), 'asym.<ringname>.read');
  assert.equal(flagName('keyring.create'), 'keyring.create');
  assert.equal(flagName('user.read', 'payroll'), 'user.read');
});

test('flags are a flat object of booleans with names of at most 256 characters', () => {
  const wrong = [null, 1, 'x', [], ['*'], { a: 1 }, { a: null }, { a: { b: true } }, { ['x'.repeat(257)]: true }];
  for (const value of wrong) {
    assert.throws(
      () => checkFlags(value),
      (error) => error instanceof KmsError && error.code === 'invalid' && error.fields?.flags !== undefined,
    );
  }
  for (const value of [{}, { a: true, b: false }, { ['x'.repeat(256)]: true }]) assert.equal(checkFlags(value), value);
});

test('the table knows its flags and their wildcards, and no others', () => {
  for (const name of knownFlags) assert.ok(isKnownFlag(name.replace('<ringname>', 'payroll')), name);
  for (const name of ['keyring.*', 'keyring.*.*', 'KEYRING.a.b.*', 'asym.*.read', 'user.*', 'system.*']) {
    assert.ok(isKnownFlag(name), name);
  }
  for (const name of [
    '',
    'keyring',
    'keyring.read',
    'keyring.a.fly',
    'asym.a.encrypt',
    'users.*',
    'constructor.*',
    '*.*',
  ]) {
    assert.equal(isKnownFlag(name), false, name);
  }
});

test('compiled flags are kept by their text', () => {
  assert.equal(flagsOfText('{"user.read":true}'), flagsOfText('{"user.read":true}'));
});

test('a set covers a flag when it lacks nothing of it', () => {
  const names = fc.constantFrom(
    '*',
    'keyring.*',
    'keyring.*.*',
    'keyring.a.b.*',
    'Keyring.Payroll.read',
    'user.*',
    'own',
    'asset.x.*',
  );
  fc.assert(
    fc.property(fc.array(names, { maxLength: 4 }), names, (have, wanted) => {
      assert.equal(flags(...have).covers(wanted), flags(...have).lacks(flags(wanted)) === undefined);
    }),
  );
});

test('a set touches a flag when both let do something, and * when it has it', () => {
  const rings = ['payroll', 'a.b', '*'];
  const names = fc.constantFrom(
    ...rings.flatMap((ring) =>
      ['read', 'rotate', '*'].flatMap((operation) => [`keyring.${ring}.${operation}`, `asym.${ring}.${operation}`]),
    ),
    ...['*', 'keyring.*', 'asym.*', 'keyring.create', 'asym.create', 'user.*', 'user.read', 'User.Update'],
  );
  const questions: (readonly [string, string?])[] = [
    ...['user.read', 'user.update', 'user.delete', 'keyring.create', 'asym.create'].map((action) => [action] as const),
    ...['keyring.read', 'keyring.rotate', 'keyring.encrypt', 'asym.read', 'asym.rotate'].flatMap((action) =>
      ['payroll', 'a.b', 'third'].map((ring) => [action, ring] as const),
    ),
  ];
  fc.assert(
    fc.property(fc.array(names, { maxLength: 3 }), names, (have, wanted) => {
      const [held, flag] = [flags(...have), flags(wanted)];
      const common = questions.some((question) => held.allows(...question) && flag.allows(...question));
      assert.equal(held.touches(wanted), wanted === '*' ? have.includes('*') : common, `${have} ${wanted}`);
    }),
    { numRuns: 5000, seed: 13 },
  );
});

test('whether a large set touches one of many flags is soon known', () => {
  const held = flags(...Array.from({ length: 5000 }, (_, n) => `keyring.ring-${n}.read`));
  const before = process.threadCpuUsage();
  for (let n = 0; n < 100; n++) assert.equal(held.touches(`keyring.other-${n}.*`), false);
  const { user, system } = process.threadCpuUsage(before);
  assert.ok(user + system < 100_000, `${user + system} µs`);
});
