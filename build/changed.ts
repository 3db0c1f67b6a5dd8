// Test files that a change can touch: those that name a changed file, directly or through others. A module counts as
// named by any quoted relative path to it, so that a worker or a program that a test starts counts as an import does.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize, relative } from 'node:path';
import { paths } from './paths.ts';

const quotedPath = /['"`](\.{1,2}\/[^'"`\n]+\.(?:tsx?|mjs))['"`]/g;

/** More test files than these take longer than a minute or two. */
const mostFiles = 40;

export interface Selection {
  readonly run: readonly string[];
  /** Test files that the change can touch too, for which there was no room. */
  readonly left: readonly string[];
}

/** Imported files by importing file, all relative to the root. */
export type Imports = ReadonlyMap<string, readonly string[]>;

/**
 * Files changed since this branch left the main branch, uncommitted ones included; on the main branch itself the
 * uncommitted ones alone.
 */
export function changedFiles(): string[] {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: paths.root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const main = ['origin/main', 'main'].find((name) => {
    try {
      return git('rev-parse', '--verify', '--quiet', name) !== '';
    } catch {
      return false;
    }
  });
  const base = main === undefined ? 'HEAD' : git('merge-base', main, 'HEAD').trim();
  const listed = git('diff', '--name-only', '--no-renames', base) + git('ls-files', '--others', '--exclude-standard');
  return listed.split('\n').filter((file) => file !== '');
}

/** The imports of every module under `folders`. */
export function allImports(folders: readonly string[] = ['src', 'build', 'scripts', 'test']): Imports {
  const files = folders.flatMap((folder) =>
    readdirSync(join(paths.root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(?:tsx?|mjs)$/.test(entry.name))
      .map((entry) => relative(paths.root, join(entry.parentPath, entry.name))),
  );
  return new Map(files.map((file) => [file, importsIn(file, readFileSync(join(paths.root, file), 'utf8'))]));
}

/** The project's own modules that a module names, those of its types included. */
export function importsIn(file: string, text: string): string[] {
  return [...text.matchAll(quotedPath)].map(([, target = '']) => normalize(join(dirname(file), target)));
}

/**
 * Selects from `tests` those that the changed files touch: a changed test itself, then tests that bear a changed file's
 * name, then those in the folder that bears its folder's, then others, each by the number of imports on the way.
 */
export function select(
  changed: readonly string[],
  imports: Imports,
  tests: readonly string[],
  most = mostFiles,
): Selection {
  const steps = stepsTo(changed, imports);
  const names = new Set(changed.map(nameOf));
  const folders = new Set(changed.map(folderOf));
  const rankOf = (test: string, step: number): number => {
    if (step === 0) return 0;
    if (names.has(nameOf(test))) return 1;
    return folders.has(folderOf(test)) ? 2 : 3;
  };
  const touched = tests.flatMap((test) => {
    const step = steps.get(test);
    return step === undefined ? [] : [{ test, step, rank: rankOf(test, step) }];
  });
  const inOrder = touched.sort((a, b) => a.rank - b.rank || a.step - b.step).map(({ test }) => test);
  return { run: inOrder.slice(0, most), left: inOrder.slice(most) };
}

/** `keyring` for `src/cli/commands/keyring.ts` and for `test/cli/keyring.test.ts`. */
function nameOf(file: string): string {
  return basename(file).replace(/\..*$/, '');
}

/** `cli` for both of these, and `build` for `build/test.ts`. */
function folderOf(file: string): string {
  const [first = '', second = ''] = file.split('/');
  return first === 'src' || first === 'test' ? second : first;
}

/** For every file that reaches a changed one, the smallest number of imports on the way. */
function stepsTo(changed: readonly string[], imports: Imports): ReadonlyMap<string, number> {
  const importers = new Map<string, string[]>();
  for (const [from, targets] of imports) {
    for (const to of targets) importers.set(to, [...(importers.get(to) ?? []), from]);
  }
  const steps = new Map(changed.map((file) => [file, 0]));
  // A map's entries include those that are added on the way.
  for (const [file, step] of steps) {
    for (const from of importers.get(file) ?? []) if (!steps.has(from)) steps.set(from, step + 1);
  }
  return steps;
}
