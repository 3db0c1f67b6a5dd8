// What is in the executable: the program itself and the code of its worker threads, each one file without imports but
// Node's own, the console's files, the API description, and whose work all of it is.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { bundleConsole, type ConsoleSources } from './console.ts';
import { type DescriptionSources, makeDescription } from './description.ts';
import { paths } from './paths.ts';
import { sbom } from './sbom.ts';
import { thirdParties } from './third-party.ts';

export interface Bundles {
  readonly main: string;
  readonly worker: string;
  /** Files by the names of their assets. */
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
    assets: { ...consoleAssets(console), ...descriptionAssets(description), ...assets(attributed) },
  };
}

export interface Attribution {
  /** JSON: name, version, license and its text of everything that is somebody else's. */
  readonly thirdParties: string;
  /** CycloneDX JSON. */
  readonly sbom: string;
}

/** For a program that runs from its sources; `src/platform/program-files.ts` knows it by its shape. */
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

function put(name: string, text: string): string {
  const file = join(paths.work, name);
  writeFileSync(file, text);
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
 * The library between server and routes asks whether a request came over HTTP/2, which its server here does not speak;
 * Node's own would be loaded at each start, in 5 to 8 ms. Code of the project loads it where it is used.
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

/** Node's own modules that the usual start has no use for, and would load in 15 to 20 ms. */
const late = ['child_process', 'cluster', 'dns', 'https', 'readline', 'tls', 'vm', 'worker_threads', 'zlib'];

/** They are loaded when something of them is used. */
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

/** The messages of the schemas' library in all languages but English: 300 kB, and some milliseconds of each start. */
const withoutLocales: Plugin = {
  name: 'without-locales',
  setup({ onLoad }) {
    const contents = "export { default as en } from './en.js';\n";
    onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({ contents }));
  },
};

/** Answers the names of all files that are in it, from the project's root. */
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
    // Names stay, for traces. Without comments the text is ASCII, and so a third of the memory that it was.
    minifyWhitespace: true,
    lineLimit: 160,
    jsx: 'automatic',
    jsxImportSource: 'hono/jsx',
    // Code that is loaded when used is in the same file; Node's own modules are required, since a compiled script
    // cannot `import()`.
    supported: { 'dynamic-import': false },
    define: { 'import.meta.url': 'undefined' },
    logLevel: 'warning',
    plugins: [withoutHttp2, withoutLocales, lateModules],
  });
  return Object.keys(metafile.inputs).filter((name) => !/^(?:without|late):/.test(name));
}
