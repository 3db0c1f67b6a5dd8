// The test files that a change selects: nearest first, up to a number, and what is left out is named.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allImports, importsIn, select } from '../../build/changed.ts';

const imports = new Map([
  ['src/model/names.ts', []],
  ['src/core/rings.ts', ['src/model/names.ts']],
  ['src/http/routes.ts', ['src/core/rings.ts']],
  ['src/http/routes/rings.ts', ['src/core/rings.ts']],
  ['test/support/appliance.ts', ['src/http/routes.ts']],
  ['test/model/names.test.ts', ['src/model/names.ts']],
  ['test/model/limits.test.ts', []],
  ['test/core/rings.test.ts', ['src/core/rings.ts']],
  ['test/http/pages.test.ts', ['src/http/routes/rings.ts']],
  ['test/http/rings.test.ts', ['test/support/appliance.ts', 'src/http/routes/rings.ts']],
  ['test/crypto/hash.test.ts', []],
]);
const tests = [...imports.keys()].filter((file) => file.endsWith('.test.ts')).sort();

test('a changed file selects the tests that reach it: by name, by folder, then the nearest first', () => {
  assert.deepEqual(select(['src/model/names.ts'], imports, tests), {
    run: ['test/model/names.test.ts', 'test/core/rings.test.ts', 'test/http/pages.test.ts', 'test/http/rings.test.ts'],
    left: [],
  });
  assert.deepEqual(select(['src/http/routes.ts'], imports, tests).run, ['test/http/rings.test.ts']);
  assert.deepEqual(select(['src/http/routes/rings.ts'], imports, tests).run, [
    'test/http/rings.test.ts',
    'test/http/pages.test.ts',
  ]);
});

test('a changed test comes first, and more than the limit are left out by name', () => {
  const changed = ['test/http/rings.test.ts', 'src/model/names.ts'];
  assert.deepEqual(select(changed, imports, tests, 2), {
    run: ['test/http/rings.test.ts', 'test/model/names.test.ts'],
    left: ['test/core/rings.test.ts', 'test/http/pages.test.ts'],
  });
});

test('a file that nothing imports selects nothing, nor does one that is gone', () => {
  assert.deepEqual(select(['docs/cli.md', 'src/gone/away.ts'], imports, tests), { run: [], left: [] });
});

test('every kind of import counts, and a path to a program, but no package', () => {
  const text = `import a from './a.ts';\nimport type { B } from '../b.ts';\nexport * from "./c.ts";\nimport './d.ts';
    import {\n  e,\n} from './e.ts';\nconst f = await import('./f.ts');\nnew URL('../main.ts', import.meta.url);\nimport g from 'g';`;
  assert.deepEqual(
    importsIn('src/x/y.ts', text).map((each) => each.replace('src/', '')),
    ['x/a.ts', 'b.ts', 'x/c.ts', 'x/d.ts', 'x/e.ts', 'x/f.ts', 'main.ts'],
  );
});

test("this project's tests reach what they test", () => {
  const all = allImports();
  const files = [...all.keys()].filter((file) => file.endsWith('.test.ts'));
  const { run } = select(['src/crypto/bech32.ts'], all, files);
  assert.equal(run[0], 'test/crypto/bech32.test.ts');
  assert.ok(run.includes('test/client/age-plugin.test.ts'));
});
