// Builds the console's files: its script as one module without imports, its style sheet and its icon. For the
// executable they become assets; a server that runs from the sources builds them on first request.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type BuildOptions, build } from 'esbuild';
import { paths } from './paths.ts';

export interface ConsoleSources {
  readonly script: string;
  readonly style: string;
  readonly icon: string;
}

export interface ConsoleBundle extends ConsoleSources {
  /** Names of all files in the bundle, relative to the project's root. */
  readonly inputs: readonly string[];
}

export async function bundleConsole(): Promise<ConsoleBundle> {
  const [script, style] = await Promise.all([bundled('main.tsx'), bundled('style.css')]);
  const icon = await readFile(join(paths.console, 'icon.svg'), 'utf8');
  return { script: script.text, style: style.text, icon, inputs: [...script.inputs, ...style.inputs] };
}

/** Bundler options for scripts and styles of pages. */
export const forPages = {
  bundle: true,
  write: false,
  minify: true,
  platform: 'browser',
  format: 'esm',
  target: ['es2022', 'chrome120', 'firefox120', 'safari17'],
  legalComments: 'none',
  logLevel: 'warning',
} satisfies BuildOptions;

interface Bundled {
  readonly text: string;
  readonly inputs: readonly string[];
}

async function bundled(entry: string): Promise<Bundled> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: paths.root,
    metafile: true,
    entryPoints: [join(paths.console, entry)],
    ...forPages,
    jsx: 'automatic',
    jsxImportSource: 'hono/jsx/dom',
  });
  const [output] = outputFiles;
  if (!output) throw new Error(`src/console/${entry} gave no output`);
  return { text: output.text, inputs: Object.keys(metafile.inputs) };
}
