// Makes dist/client, the client library as a package: one module for Node and browsers without an import, its types,
// and the licences of what is in it. It is complete in itself, so that it can be carried to where there is no network.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { build } from 'esbuild';
import { version } from '../src/version.ts';
import { clientContract } from './client-contract.ts';
import { paths } from './paths.ts';
import { packagesIn } from './third-party.ts';

/** What the module's size stays under, in bytes. */
export const sizeLimit = 60_000;

/** Whatever was in `directory` before is gone. */
export async function buildClient(directory: string): Promise<void> {
  const draft = `${directory}.${process.pid}`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  try {
    const inputs = await bundleClient(join(draft, 'index.js'));
    declareClient(draft);
    writeFileSync(join(draft, 'package.json'), `${JSON.stringify(packageJson(), null, 2)}\n`);
    copyFileSync(join(paths.root, 'LICENSE'), join(draft, 'LICENSE'));
    writeFileSync(join(draft, 'THIRD-PARTY-LICENSES'), licensesOf(inputs));
    rmSync(directory, { recursive: true, force: true });
    renameSync(draft, directory);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** Answers the names of all files that are in it, from the project's root. */
async function bundleClient(outfile: string): Promise<readonly string[]> {
  const { metafile } = await build({
    absWorkingDir: paths.root,
    metafile: true,
    entryPoints: [paths.clientEntry],
    outfile,
    bundle: true,
    minify: true,
    platform: 'browser',
    format: 'esm',
    target: ['es2022', 'node20', 'chrome120', 'firefox124', 'safari17.4'],
    legalComments: 'none',
    banner: { js: `/*! kms client ${version}, Apache-2.0; with parts under MIT, see THIRD-PARTY-LICENSES */` },
    logLevel: 'warning',
  });
  return Object.keys(metafile.inputs);
}

/** What the compiler makes of the entry and all that it names, but for the methods, which need no schemas then. */
function declareClient(directory: string): void {
  const work = join(directory, '.work');
  const source = join(paths.root, 'src');
  mkdirSync(work);
  const config = {
    extends: join(paths.root, 'tsconfig.json'),
    compilerOptions: {
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      rootDir: source,
      outDir: work,
      typeRoots: [join(paths.root, 'node_modules/@types')],
    },
    include: [],
    files: [paths.clientEntry],
  };
  writeFileSync(join(work, 'tsconfig.json'), JSON.stringify(config));
  const tsc = join(paths.root, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, '-p', work], { stdio: ['ignore', 'inherit', 'inherit'] });

  const entry = relative(source, paths.clientEntry).replace(/ts$/, 'd.ts');
  writeFileSync(join(work, 'client/methods.d.ts'), clientContract());
  const waiting = [entry];
  for (const name of waiting) {
    const text = readFileSync(join(work, name), 'utf8').replace(/(from '\.[^']*)\.ts'/g, "$1.js'");
    const target = join(directory, 'types', name);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text);
    for (const [, imported = ''] of text.matchAll(/from '([^']*)'/g)) {
      if (!imported.startsWith('.')) throw new Error(`types/${name} needs ${imported}: the package has no dependency`);
      const next = join(dirname(name), imported.replace(/js$/, 'd.ts'));
      if (!waiting.includes(next)) waiting.push(next);
    }
  }
  writeFileSync(join(directory, 'index.d.ts'), `export * from './types/${entry.replace(/d\.ts$/, 'js')}';\n`);
  rmSync(work, { recursive: true });
}

/** Its name and export are those of the project itself, so that a program does not tell them apart. */
function packageJson() {
  return {
    name: 'kms',
    version,
    description: 'Client library of the kms key-management appliance',
    license: 'Apache-2.0',
    type: 'module',
    engines: { node: '>=20.3' },
    sideEffects: false,
    exports: { './client': { types: './index.d.ts', default: './index.js' } },
  };
}

function licensesOf(inputs: readonly string[]): string {
  return packagesIn(inputs)
    .map(({ name, version, license, text }) => `${name} ${version} (${license})\n\n${text}\n`)
    .join(`\n${'-'.repeat(80)}\n\n`);
}
