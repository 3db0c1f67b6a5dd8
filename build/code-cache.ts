// V8's cache of compiled code, without which a start takes half as long again. One that is made before a program runs
// holds what is outside of its functions alone, and each start compiles the rest; so these are made after a run, and
// hold the functions that it called: one those that load a server, one those that load a command.
//
// A build has to give the same bytes again. So the runs do nothing that depends on time or chance: what they are asked
// for is refused once all is loaded. A cache names the flags that it was made under and is not used under others, so it
// is told that those were the executable's. Programs that use it have random seeds for the hashes of strings, as with
// any cache: V8 hashes them anew.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';

/** The names of assets. */
export const program = 'kms.js';
const ofServer = 'server.cache';
const ofCommand = 'command.cache';

/** A bundle as `starter` and `rehearsal` have it: a function of what a script is given. */
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

/** What an executable for `rehearsed` begins with. Its environment names the file that the cache goes to. */
export const rehearsal = `'use strict';
const { getAsset } = require('node:sea');
const { Script } = require('node:vm');
const script = new Script(getAsset('${program}', 'utf8'), { filename: '${program}' });
process.on('exit', () => require('node:fs').writeFileSync(process.env.KMS_CODE_CACHE, script.createCachedData()));
script.runInThisContext()(require, __filename, __dirname);
`;

/**
 * With which it runs, besides those that the program has. Nothing is forgotten or compiled any better, and nothing is
 * collected: memory that is used again leaves its traces in gaps of what is cached.
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

/** What is asked for, and the exit code. */
const runs = [
  { cache: ofServer, args: ['serve', '--listen', 'nowhere'], code: 2 },
  { cache: ofCommand, args: ['keyring', 'list'], code: 3 },
] as const;

/**
 * Lets it run, and answers the caches as assets of an executable that runs with `flags` and has `text` for its program.
 * Throws where that would not use them.
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

/** Where a cache has the hash of its flags: behind magic number, version and the source's length, four bytes each. */
const flagsAt = 12;

/**
 * Node's own modules have caches too, in the runtime itself, made under no flags: under others each start compiled them
 * anew, in 40 to 50 ms. So they are told that they were made under `flags`, in place; none of what the executable runs
 * with changes what they say. Answers how many they are.
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

/** `cache`, told that it was made as `other` was. */
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
