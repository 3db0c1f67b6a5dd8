// The console's files: its script as one module without imports, its style sheet and its icon. For the executable they become assets; a
// server that runs from the sources makes them when they are first asked for.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { paths } from './paths.ts';

export interface ConsoleSources {
  readonly script: string;
  readonly style: string;
  readonly icon: string;
}

export async function bundleConsole(): Promise<ConsoleSources> {
  const [script, style] = await Promise.all([bundled('main.tsx'), bundled('style.css')]);
  return { script, style, icon: await readFile(join(paths.console, 'icon.svg'), 'utf8') };
}

async function bundled(entry: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(paths.console, entry)],
    bundle: true,
    write: false,
    minify: true,
    platform: 'browser',
    format: 'esm',
    target: ['es2022', 'chrome120', 'firefox120', 'safari17'],
    legalComments: 'none',
    jsx: 'automatic',
    jsxImportSource: 'hono/jsx/dom',
    logLevel: 'warning',
  });
  const [output] = outputFiles;
  if (!output) throw new Error(`src/console/${entry} gave no output`);
  return output.text;
}
