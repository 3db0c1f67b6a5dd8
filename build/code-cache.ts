// V8's code cache, without which a start takes half as long again. A cache made before a program runs holds only
// top-level code, and each start compiles the rest; so these are made after a run and include the functions that it
// called: one cache for commands that load a server, one for the others.
//
// A build must be reproducible, so the runs do nothing that depends on time or chance: they are given arguments that
// are refused once everything is loaded. A cache names the flags that it was made under and is rejected under others,
// so its flag hash is replaced by that of the executable's flags. Programs that use it still hash strings with a random
// seed, as with any cache: V8 hashes them again.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';

/** Asset names. */
export const program = 'kms.js';
const ofServer = 'server.cache';
const ofCommand = 'command.cache';

/** Wraps a bundle as `starter` and `rehearsal` expect it: a function of a script's arguments. */
export function asFunction(bundle: string): string {
  return `(function (require, __filename, __dirname) {${bundle}\n})`;
}

/** The script that the executable begins with. */
export const starter = `'use strict';
const { getAsset, getRawAsset } = require('node:sea');
const { Script } = require('node:vm');
const serves = process.argv.includes('serve') || process.argv.includes('standby');
const cachedData = new Uint8Array(getRawAsset(serves ? '${ofServer}' : '${ofCommand}'));
const script = new Script(getAsset('${program}', 'utf8'), { filename: '${program}', cachedData });
script.runInThisContext()(require, __filename, __dirname);
`;

/**
 * The first script of an executable for `rehearsed`. Its environment variable names the file that the cache is written
 * to.
 */
export const rehearsal = `'use strict';
const { getAsset } = require('node:sea');
const { Script } = require('node:vm');
const script = new Script(getAsset('${program}', 'utf8'), { filename: '${program}' });
process.on('exit', () => require('node:fs').writeFileSync(process.env.KMS_CODE_CACHE, script.createCachedData()));
script.runInThisContext()(require, __filename, __dirname);
`;

/**
 * V8 flags of the rehearsal, besides the program's own. They prevent bytecode flushing, optimisation and garbage
 * collection: reused memory would leave traces in gaps of the cache.
 */
export const rehearsalFlags = [
  '--hash-seed=1',
  '--no-flush-bytecode',
  '--min-semi-space-size=256',
  '--max-semi-space-size=256',
  '--initial-old-space-size=2000',
  '--no-sparkplug',
  '--no-maglev',
  '--no-opt',
];

/** Arguments of each run and the exit code that it must end with. */
const runs = [
  { cache: ofServer, args: ['serve', '--listen', 'nowhere'], code: 2 },
  { cache: ofCommand, args: ['keyring', 'list'], code: 3 },
] as const;

/**
 * Runs the executable and returns the caches as assets for an executable that runs with `flags` and has `text` as its
 * program. Throws if V8 would reject one.
 */
export function rehearsed(executable: string, flags: readonly string[], text: string): [name: string, cache: Buffer][] {
  const usual = cacheUnder(flags);
  return runs.map(({ cache, args, code }) => {
    const file = `${executable}.${cache}`;
    const env = { KMS_CODE_CACHE: file, KMS_DATA: `${executable}.data` };
    const { status, stderr } = spawnSync(executable, args, { env, encoding: 'utf8' });
    if (status !== code) throw new Error(`rehearsal: kms ${args.join(' ')}: exit code ${status}: ${stderr}`);
    const made = toldOf(readFileSync(file), usual);
    writeFileSync(file, made);
    if (!isUsed(file, flags, text)) throw new Error(`V8 takes ${cache} for another program's, or another V8's`);
    rmSync(file);
    return [cache, made];
  });
}

/** Offset of the flag hash in a cache: after magic number, version and source length, four bytes each. */
const flagsAt = 12;

/**
 * Node's own modules have code caches in the runtime itself, made under no flags; under others each start would compile
 * them again, in 40 to 50 ms. This rewrites their flag hash to that of `flags`, in place; no flag of the executable
 * changes the code in them. Returns the number of caches.
 */
export function tellNodesCaches(executable: Buffer, flags: readonly string[]): number {
  const [bare, usual] = [cacheUnder([]), cacheUnder(flags)];
  const header = bare.subarray(0, 8);
  const made = bare.subarray(flagsAt, flagsAt + 4);
  let told = 0;
  for (let at = executable.indexOf(header); at >= 0; at = executable.indexOf(header, at + header.length)) {
    if (!executable.subarray(at + flagsAt, at + flagsAt + 4).equals(made)) continue;
    toldOf(executable.subarray(at, at + flagsAt + 4), usual);
    told++;
  }
  return told;
}

/** Gives `cache` the flag hash of `other`, in place. */
function toldOf(cache: Buffer, other: Buffer): Buffer {
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
