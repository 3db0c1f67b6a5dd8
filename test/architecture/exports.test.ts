// Nothing is exported that no other file imports: names that only their own file uses stay private, unused ones are
// deleted.
import assert from 'node:assert/strict';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import { codeOf, sources } from './imports.ts';

/** The library's users import these; commands are found by the names of the grammar. */
const takenFromOutside = /^src\/(?:client\/(?:sdk|methods)|cli\/commands\/[\w-]+)\.ts$/;

const declaration =
  /^export\s+(?:abstract\s+)?(?:async\s+)?(?:const|let|function\*?|class|interface|type|enum)\s+(\w+)|^export\s+(?:type\s+)?\{([^}]*)\}/gm;
const named = /(?:import|export)\s+(?:type\s+)?(?:\w+,\s*)?\{([^}]*)\}\s+from\s+['"](\.[^'"]+)['"]/g;
/** Imports of whole modules, whose names appear elsewhere in the file. */
const whole =
  /\bimport\(\s*['"](\.[^'"]+)['"]\s*\)|(?:import|export)\s+\*(?:\s+as\s+\w+)?\s+from\s+['"](\.[^'"]+)['"]/g;

function namesIn(list: string, side: 'outside' | 'inside'): string[] {
  return list
    .split(',')
    .map((each) => each.trim().replace(/^type\s+/, ''))
    .filter((each) => each !== '')
    .map((each) => each.split(/\s+as\s+/).at(side === 'outside' ? -1 : 0) ?? '');
}

function exportsOf(code: string): string[] {
  return [...code.matchAll(declaration)].flatMap(([, name, list]) =>
    name === undefined ? namesIn(list ?? '', 'outside') : [name],
  );
}

/** Names that a file imports, as `path name`. */
function* takenBy(file: string, code: string, all: ReadonlyMap<string, readonly string[]>): Generator<string> {
  const target = (specifier: string): string => normalize(join(dirname(file), specifier));
  for (const [, list = '', specifier = ''] of code.matchAll(named)) {
    for (const name of namesIn(list, 'inside')) yield `${target(specifier)} ${name}`;
  }
  for (const [, dynamic, namespace] of code.matchAll(whole)) {
    const from = target(dynamic ?? namespace ?? '');
    for (const name of all.get(from) ?? []) if (new RegExp(`\\b${name}\\b`).test(code)) yield `${from} ${name}`;
  }
}

test('the scanner sees each way to export and to import', () => {
  const code = `export const a = 1;\nexport async function b() {}\nexport type { C, d as E } from './x.ts';`;
  assert.deepEqual(exportsOf(code), ['a', 'b', 'C', 'E']);
  const all = new Map([['src/y/z.ts', ['f', 'g']]]);
  const taker = `import { type A, b as c } from './x.ts';\nconst { f } = await import('../y/z.ts');`;
  assert.deepEqual([...takenBy('src/w/v.ts', taker, all)], ['src/w/x.ts A', 'src/w/x.ts b', 'src/y/z.ts f']);
});

test('what is exported is taken by some other file', () => {
  const exported = new Map(sources().map((source) => [source, exportsOf(codeOf(source))]));
  const taken = new Set<string>();
  for (const file of ['src', 'test', 'build', 'scripts'].flatMap((folder) => sources(folder))) {
    for (const each of takenBy(file, codeOf(file), exported)) taken.add(each);
  }
  const idle = [...exported]
    .filter(([source]) => !takenFromOutside.test(source))
    .flatMap(([source, names]) => names.map((name) => `${source} ${name}`))
    .filter((each) => !taken.has(each));
  assert.deepEqual(idle, []);
});
