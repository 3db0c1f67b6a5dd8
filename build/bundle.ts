// The two scripts in the executable: the program itself and the code of its worker threads, each one file without imports but Node's own.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { paths } from './paths.ts';

export interface Bundles {
  readonly main: string;
  readonly worker: string;
}

export async function bundle(): Promise<Bundles> {
  mkdirSync(paths.work, { recursive: true });
  const bundles = { main: join(paths.work, 'kms.cjs'), worker: join(paths.work, 'worker.cjs') };
  await Promise.all([bundleOne('src/main.ts', bundles.main), bundleOne('src/server/worker.ts', bundles.worker)]);
  return bundles;
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
