// V8's code cache in the executable halves the time to its start, and differs from build to build by the random seed of
// strings' hashes. So it is made under a fixed seed, and then told that it was made under none: a cache names the flags
// that it was made with, and is not used under others. Programs that use it have random seeds of their own, as with any
// cache; V8 hashes the strings anew.
import { execFileSync } from 'node:child_process';
import { Script } from 'node:vm';

export const fixedSeed = '--hash-seed=1';

/** Where a cache has them: magic, version and hash of the flags, each four bytes. */
const places = { magic: 0, version: 4, flags: 12 } as const;

/** Changes `executable`, built by a Node with `fixedSeed`, in place. Throws where there is not just the one cache. */
export function freeCodeCache(executable: Buffer): void {
  const usual = new Script('0').createCachedData();
  const program = `process.stdout.write(new (require('node:vm').Script)('0').createCachedData())`;
  const seeded = execFileSync(process.execPath, [fixedSeed, '--eval', program]);
  const start = seeded.subarray(places.magic, places.version + 4);
  const flags = seeded.subarray(places.flags, places.flags + 4);
  const found: number[] = [];
  for (let at = executable.indexOf(start); at >= 0; at = executable.indexOf(start, at + 1)) {
    if (executable.subarray(at + places.flags, at + places.flags + 4).equals(flags)) found.push(at);
  }
  const [at] = found;
  if (at === undefined || found.length > 1) throw new Error(`expected one code cache, found ${found.length}`);
  usual.copy(executable, at + places.flags, places.flags, places.flags + 4);
}
