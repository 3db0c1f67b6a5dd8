// Finds the imports of each module: every static, re-exporting and dynamic import in the sources, by one pattern over
// the text without its comments.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Import {
  /** A path relative to the repository's root, such as `src/core/rings.ts`. */
  readonly from: string;
  /** Another such path, or the name of a package, such as `node:fs` or `hono/cors`. */
  readonly to: string;
  /** An import of types only, which is gone at run time. */
  readonly typeOnly: boolean;
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const statement =
  /(?:^|\n)\s*(?:import|export)\s+(type\s)?(?:[^'";]*?\sfrom\s+)?['"]([^'"\n]+)['"]|\bimport\(\s*['"]([^'"\n]+)['"]\s*\)/g;

export function sources(folder = 'src'): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
}

export function textOf(source: string): string {
  return readFileSync(join(root, source), 'utf8');
}

/** Removes comments: whole lines of `//` and blocks of `/* … *​/`. */
export function codeOf(source: string): string {
  return textOf(source)
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/^\s*\/\/.*$/gm, '');
}

export function importsOf(from: string, code = codeOf(from)): Import[] {
  return [...code.matchAll(statement)].map(([, type, named, dynamic]) => {
    const target = named ?? dynamic ?? '';
    const to = target.startsWith('.') ? normalize(join(dirname(from), target)) : target;
    return { from, to, typeOnly: type !== undefined };
  });
}
