// V8's code caches. A cache made before a program runs holds only top-level code, and each start compiles the rest; the
// program's cache is made after a run instead and includes the functions that the run called.
//
// A build must be reproducible, so the run does nothing that depends on time or chance: its arguments are refused once
// everything is loaded. A cache names the flags that it was made under and is rejected under others, so its flag hash
// is replaced by that of the executable's flags. Programs that use it still hash strings with a random seed, as with any
// cache: V8 hashes them again.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';

/** Asset names. */
export const program = 'kms.js';
export const programCache = 'kms.cache';

/** Wraps a bundle as `startScript` and `profileScript` expect it: a function of a script's arguments. */
export function asFunction(bundle: string): string {
  return `(function (require, __filename, __dirname) {${bundle}\n})`;
}

/** The script that the executable begins with. */
export const startScript = `'use strict';
const { getAsset, getRawAsset } = require('node:sea');
const { Script } = require('node:vm');
const cachedData = new Uint8Array(getRawAsset('${programCache}'));
const script = new Script(getAsset('${program}', 'utf8'), { filename: '${program}', cachedData });
script.runInThisContext()(require, __filename, __dirname);
`;

/**
 * The first script of an executable for `profiledCache`. Its environment variable names the file that the cache is
 * written to.
 */
export const profileScript = `'use strict';
const { getAsset } = require('node:sea');
const { Script } = require('node:vm');
const script = new Script(getAsset('${program}', 'utf8'), { filename: '${program}' });
process.on('exit', () => require('node:fs').writeFileSync(process.env.KMS_CODE_CACHE, script.createCachedData()));
script.runInThisContext()(require, __filename, __dirname);
`;

/**
 * V8 flags of the profile run, besides the program's own. They prevent bytecode flushing, optimisation and garbage
 * collection: reused memory would leave traces in gaps of the cache.
 */
export const profileFlags = [
  '--hash-seed=1',
  '--no-flush-bytecode',
  '--min-semi-space-size=256',
  '--max-semi-space-size=256',
  '--initial-old-space-size=2000',
  '--no-sparkplug',
  '--no-maglev',
  '--no-opt',
];

/** Arguments of the run and the exit code that it must end with: a server has most to load. */
const profileRun = { args: ['serve', '--listen', 'nowhere'], code: 2 } as const;

/**
 * Runs the executable and returns the cache for an executable that runs with `flags` and has `text` as its program.
 * Throws if V8 would reject it.
 */
export function profiledCache(executable: string, flags: readonly string[], text: string): Buffer {
  const { args, code } = profileRun;
  const file = `${executable}.cache`;
  const env = { KMS_CODE_CACHE: file, KMS_DATA: `${executable}.data` };
  const { status, stderr } = spawnSync(executable, args, { env, encoding: 'utf8' });
  if (status !== code) throw new Error(`profile run: kms ${args.join(' ')}: exit code ${status}: ${stderr}`);
  const cache = takeFlagHash(readFileSync(file), cacheUnder(flags));
  writeFileSync(file, cache);
  if (!isUsed(file, flags, text)) throw new Error("V8 takes the cache for another program's, or another V8's");
  rmSync(file);
  return cache;
}

/** Offset of the flag hash in a cache: after magic number, version and source length, four bytes each. */
const flagsAt = 12;

/**
 * Node's own modules have code caches in the runtime itself, made under no flags; under others each start would compile
 * them again. This rewrites their flag hash to that of `flags`, in place; no flag of the executable
 * changes the code in them. Returns the number of caches.
 */
export function rehashNodeCaches(executable: Buffer, flags: readonly string[]): number {
  const [bare, usual] = [cacheUnder([]), cacheUnder(flags)];
  const header = bare.subarray(0, 8);
  const made = bare.subarray(flagsAt, flagsAt + 4);
  let count = 0;
  for (let at = executable.indexOf(header); at >= 0; at = executable.indexOf(header, at + header.length)) {
    if (!executable.subarray(at + flagsAt, at + flagsAt + 4).equals(made)) continue;
    takeFlagHash(executable.subarray(at, at + flagsAt + 4), usual);
    count++;
  }
  return count;
}

/** Gives `cache` the flag hash of `other`, in place. */
function takeFlagHash(cache: Buffer, other: Buffer): Buffer {
  if (!cache.subarray(0, 8).equals(other.subarray(0, 8))) throw new Error('two caches of one V8 begin differently');
  other.copy(cache, flagsAt, flagsAt, flagsAt + 4);
  return cache;
}

function isUsed(cache: string, flags: readonly string[], text: string): boolean {
  const script = `const { readFileSync } = require('node:fs');
    const [text, cache] = process.argv.slice(1);
    const options = { filename: '${program}', cachedData: readFileSync(cache) };
    process.exit(Number(new (require('node:vm').Script)(readFileSync(text, 'utf8'), options).cachedDataRejected))`;
  return spawnSync(process.execPath, [...flags, '--eval', script, text, cache]).status === 0;
}

function cacheUnder(flags: readonly string[]): Buffer {
  const script = `process.stdout.write(new (require('node:vm').Script)('0').createCachedData())`;
  return execFileSync(process.execPath, [...flags, '--eval', script]);
}
