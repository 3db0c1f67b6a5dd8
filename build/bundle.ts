// What is in the executable: the program itself and the code of its worker threads, each one file without imports but Node's own, and
// the console's files.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { bundleConsole } from './console.ts';
import { paths } from './paths.ts';

export interface Bundles {
  readonly main: string;
  readonly worker: string;
  /** Files by the names of their assets. */
  readonly console: Readonly<Record<string, string>>;
}

export async function bundle(): Promise<Bundles> {
  mkdirSync(paths.work, { recursive: true });
  const main = join(paths.work, 'kms.cjs');
  const worker = join(paths.work, 'worker.cjs');
  const [console] = await Promise.all([
    consoleAssets(),
    bundleOne('src/main.ts', main),
    bundleOne('src/server/worker.ts', worker),
  ]);
  return { main, worker, console };
}

async function consoleAssets(): Promise<Readonly<Record<string, string>>> {
  const { script, style, icon } = await bundleConsole();
  const assets: Record<string, string> = {};
  for (const [name, text] of [
    ['console.js', script],
    ['console.css', style],
    ['icon.svg', icon],
  ] as const) {
    assets[name] = join(paths.work, name);
    writeFileSync(join(paths.work, name), text);
  }
  return assets;
}

async function bundleOne(entry: string, outfile: string): Promise<void> {
  await build({
    entryPoints: [join(paths.root, entry)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node26',
    legalComments: 'none',
    minifySyntax: true,
    jsx: 'automatic',
    jsxImportSource: 'hono/jsx',
    // Code that is loaded when used is in the same file; Node's own modules are required, since a compiled script cannot `import()`.
    supported: { 'dynamic-import': false },
    define: { 'import.meta.url': 'undefined' },
    logLevel: 'warning',
  });
}
