// One digest over all inputs of the executable, so that a build is skipped if nothing has changed.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { paths } from './paths.ts';

const sources = ['src', 'build', 'docs'];
const singles = ['package-lock.json', 'tsconfig.json'];

export function digestOfInputs(): string {
  const hash = createHash('sha256');
  hash.update(`${process.version} ${process.platform} ${process.arch}\n`);
  for (const file of [...sources.flatMap(filesIn), ...singles.map((name) => join(paths.root, name))]) {
    const bytes = readFileSync(file);
    hash.update(`${relative(paths.root, file)} ${bytes.length}\n`).update(bytes);
  }
  return hash.digest('hex');
}

function filesIn(dir: string): string[] {
  return readdirSync(join(paths.root, dir), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
