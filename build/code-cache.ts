// V8's code cache in the executable halves the time to its start, and differs from build to build by the random seed of
// strings' hashes. So it is made under a fixed seed, and then told that it was made under the flags that the executable
// runs with: a cache names the flags that it was made with, and is not used under others. Programs that use it have
// random seeds of their own, as with any cache; V8 hashes the strings anew.
import { execFileSync } from 'node:child_process';

export const fixedSeed = '--hash-seed=1';

/** Where a cache has them: magic, version and hash of the flags, each four bytes. */
const places = { magic: 0, version: 4, flags: 12 } as const;

/**
 * Changes `executable`, built by a Node with `fixedSeed`, in place, for one that runs with `flags`. Throws where there is
 * not just the one cache.
 */
export function freeCodeCache(executable: Buffer, flags: readonly string[]): void {
  const usual = cacheUnder(flags);
  const seeded = cacheUnder([fixedSeed]);
  const start = seeded.subarray(places.magic, places.version + 4);
  const seededFlags = seeded.subarray(places.flags, places.flags + 4);
  const found: number[] = [];
  for (let at = executable.indexOf(start); at >= 0; at = executable.indexOf(start, at + 1)) {
    if (executable.subarray(at + places.flags, at + places.flags + 4).equals(seededFlags)) found.push(at);
  }
  const [at] = found;
  if (at === undefined || found.length > 1) throw new Error(`expected one code cache, found ${found.length}`);
  usual.copy(executable, at + places.flags, places.flags, places.flags + 4);
}

function cacheUnder(flags: readonly string[]): Buffer {
  const program = `process.stdout.write(new (require('node:vm').Script)('0').createCachedData())`;
  return execFileSync(process.execPath, [...flags, '--eval', program]);
}
