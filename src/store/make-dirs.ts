// A directory and those above it, level by level: Node's own recursive mkdir never ends below a file system that answers ENOENT
// to it, as /proc does.
import { mkdir } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/** Makes the directory with mode 0700; answers the topmost one that it had to make, undefined when all were there. */
export async function makeDirs(path: string): Promise<string | undefined> {
  const whole = resolve(path);
  try {
    await mkdir(whole, { mode: 0o700 });
    return whole;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return undefined;
    if (codeOf(error) !== 'ENOENT' || dirname(whole) === whole) throw error;
  }
  const above = await makeDirs(dirname(whole));
  // What is above was there or is now: a second ENOENT is the file system's own.
  await mkdir(whole, { mode: 0o700 });
  return above ?? whole;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
