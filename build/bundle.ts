// Contents of the executable: the program and its worker threads, each bundled into one file that imports only Node's
// own modules; the console's files; the API description; the guides; and the licences and SBOM.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { build, type Plugin } from 'esbuild';
import { bundleConsole, type ConsoleSources } from './console.ts';
import { type DescriptionSources, makeDescription } from './description.ts';
import { readGuides } from './guides.ts';
import { paths } from './paths.ts';
import { sbom } from './sbom.ts';
import { thirdParties } from './third-party.ts';

export interface Bundles {
  readonly main: string;
  readonly worker: string;
  /** Files by asset name. */
  readonly assets: Readonly<Record<string, string>>;
}

export async function bundle(): Promise<Bundles> {
  mkdirSync(paths.work, { recursive: true });
  const description = await makeDescription();
  const main = join(paths.work, 'kms.cjs');
  const worker = join(paths.work, 'worker.cjs');
  const [console, ...inputs] = await Promise.all([
    bundleConsole(),
    bundleOne('src/main.ts', main),
    bundleOne('src/appliance/worker.ts', worker),
  ]);
  const attributed = await attribution([...inputs.flat(), ...console.inputs]);
  return {
    main,
    worker,
    assets: {
      ...consoleAssets(console),
      ...descriptionAssets(description),
      ...assets(attributed),
      'guides.json.br': put('guides.json.br', brotliCompressSync(JSON.stringify(await readGuides()))),
    },
  };
}

export interface Attribution {
  /** JSON: name, version, license and license text of every third-party component. */
  readonly thirdParties: string;
  /** CycloneDX JSON. */
  readonly sbom: string;
}

/** Attribution for a program that runs from its sources; `src/platform/program-files.ts` recognises it by its shape. */
export async function attributionOfSources(): Promise<Attribution> {
  mkdirSync(paths.work, { recursive: true });
  const file = join(paths.work, `attribution-${process.pid}.cjs`);
  try {
    return await attribution([
      ...(await bundleOne('src/main.ts', file)),
      ...(await bundleOne('src/appliance/worker.ts', file)),
      ...(await bundleConsole()).inputs,
    ]);
  } finally {
    rmSync(file, { force: true });
  }
}

async function attribution(inputs: readonly string[]): Promise<Attribution> {
  const parts = await thirdParties(inputs);
  const listed = parts.map(({ name, version, license, text }) => ({ name, version, license, text }));
  return { thirdParties: `${JSON.stringify(listed)}\n`, sbom: sbom(parts) };
}

function assets({ thirdParties, sbom }: Attribution): Readonly<Record<string, string>> {
  return { 'third-parties.json': put('third-parties.json', thirdParties), 'sbom.json': put('sbom.json', sbom) };
}

function put(name: string, content: string | Uint8Array): string {
  const file = join(paths.work, name);
  writeFileSync(file, content);
  return file;
}

function descriptionAssets({
  document,
  page,
  pages,
  style,
  script,
}: DescriptionSources): Readonly<Record<string, string>> {
  return {
    'openapi.json': put('openapi.json', document),
    'docs.html': put('docs.html', page),
    'docs.json': put('docs.json', JSON.stringify(pages)),
    'docs.css': put('docs.css', style),
    'docs.js': put('docs.js', script),
  };
}

function consoleAssets({ script, style, icon }: ConsoleSources): Readonly<Record<string, string>> {
  const assets: Record<string, string> = {};
  for (const [name, text] of [
    ['console.js', script],
    ['console.css', style],
    ['icon.svg', icon],
  ] as const) {
    assets[name] = put(name, text);
  }
  return assets;
}

/**
 * The Hono server adapter asks whether a request came over HTTP/2, which this server does not speak; loading node:http2
 * would cost 5 to 8 ms at each start. The project's own code loads it where it is used.
 */
const withoutHttp2: Plugin = {
  name: 'without-http2',
  setup({ onResolve, onLoad }) {
    const namespace = 'without';
    onResolve({ filter: /^node:http2$/ }, ({ path, importer }) =>
      /[\\/]node_modules[\\/]/.test(importer) ? { path, namespace } : undefined,
    );
    const contents = 'export class Http2ServerRequest {}\nexport const constants = {};\n';
    onLoad({ filter: /./, namespace }, () => ({ contents }));
  },
};

/** Node's own modules that a usual start does not need, and that would take 15 to 20 ms to load. */
const late = ['child_process', 'cluster', 'dns', 'https', 'readline', 'tls', 'vm', 'worker_threads', 'zlib'];

/** Loads each of these modules on first use. */
const lateModules: Plugin = {
  name: 'late-modules',
  setup({ onResolve, onLoad }) {
    const namespace = 'late';
    onResolve({ filter: new RegExp(`^(?:node:)?(?:${late.join('|')})$`) }, ({ path, namespace: importer }) =>
      importer === namespace ? { path, external: true } : { path: path.replace(/^node:/, ''), namespace },
    );
    onLoad({ filter: /./, namespace }, ({ path }) => {
      const names = Object.getOwnPropertyNames(createRequire(import.meta.url)(`node:${path}`));
      const getters = names.map((name) => `get ${name}() { return load().${name}; }`);
      return {
        contents: `let it;\nconst load = () => (it ??= require('node:${path}'));\nmodule.exports = { ${getters.join(', ')} };`,
      };
    });
  },
};

/** Drops zod's messages in all languages but English: 300 kB, and some milliseconds of each start. */
const withoutLocales: Plugin = {
  name: 'without-locales',
  setup({ onLoad }) {
    const contents = "export { default as en } from './en.js';\n";
    onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({ contents }));
  },
};

/** Returns the names of all files in the bundle, relative to the project's root. */
async function bundleOne(entry: string, outfile: string): Promise<readonly string[]> {
  const { metafile } = await build({
    absWorkingDir: paths.root,
    metafile: true,
    entryPoints: [join(paths.root, entry)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node26',
    legalComments: 'none',
    minifySyntax: true,
    // Identifiers stay, for stack traces. Without comments the text is ASCII, which takes a third of the memory.
    minifyWhitespace: true,
    lineLimit: 160,
    jsx: 'automatic',
    jsxImportSource: 'hono/jsx',
    // Code that is loaded on demand stays in the same file; Node's own modules are required, since a compiled script
    // cannot `import()`.
    supported: { 'dynamic-import': false },
    define: { 'import.meta.url': 'undefined' },
    logLevel: 'warning',
    plugins: [withoutHttp2, withoutLocales, lateModules],
  });
  return Object.keys(metafile.inputs).filter((name) => !/^(?:without|late):/.test(name));
}
