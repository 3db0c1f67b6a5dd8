// Makes dist/client, the client library as a package: a module for Node and browsers without an import, a small one beside
// it that not every program needs, their types, and the licences of what is in them; and the file that npm installs, with the same in it. Both are complete in
// themselves, so that they can be carried to where there is no network.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { version } from '../src/version.ts';
import { clientContract } from './client-contract.ts';
import { paths } from './paths.ts';
import { packagesIn } from './third-party.ts';

/**
 * What the module's size stays under, in bytes: 16 kB of them are ML-KEM-768 and SHA-3, which hybrid keyrings need, and
 * 12 kB the shapes by which answers are checked.
 */
export const sizeLimit = 83_000;

/** What programs import it by. In no registry has it that name: it is installed from its file. */
export const clientName = '@kms-appliance/client';

/** By the name of its file. */
const clientModules = { index: paths.clientEntry, rollback: paths.clientRollback };

/** Whatever was in `directory` before is gone. */
export async function buildClient(directory: string): Promise<void> {
  const draft = `${directory}.${process.pid}`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  try {
    const inputs = await bundleClient(draft);
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
async function bundleClient(outdir: string): Promise<readonly string[]> {
  const { metafile } = await build({
    absWorkingDir: paths.root,
    metafile: true,
    entryPoints: clientModules,
    outdir,
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
    files: Object.values(clientModules),
  };
  writeFileSync(join(work, 'tsconfig.json'), JSON.stringify(config));
  const tsc = join(paths.root, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, '-p', work], { stdio: ['ignore', 'inherit', 'inherit'] });

  const declarations = Object.entries(clientModules).map(
    ([module, file]) => [module, relative(source, file).replace(/ts$/, 'd.ts')] as const,
  );
  writeFileSync(join(work, 'client/methods.d.ts'), clientContract());
  const waiting = declarations.map(([, name]) => name);
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
  for (const [module, name] of declarations) {
    writeFileSync(join(directory, `${module}.d.ts`), `export * from './types/${name.replace(/d\.ts$/, 'js')}';\n`);
  }
  rmSync(work, { recursive: true });
}

function packageJson() {
  return {
    name: clientName,
    version,
    description: 'Client library of the kms key-management appliance',
    license: 'Apache-2.0',
    type: 'module',
    engines: { node: '>=20.3' },
    sideEffects: false,
    exports: {
      '.': { types: './index.d.ts', default: './index.js' },
      './rollback': { types: './rollback.d.ts', default: './rollback.js' },
      './package.json': './package.json',
    },
    // For what resolves modules as Node 10 did, and knows no exports.
    main: './index.js',
    types: './index.d.ts',
  };
}

function licensesOf(inputs: readonly string[]): string {
  return packagesIn(inputs)
    .map(({ name, version, license, text }) => `${name} ${version} (${license})\n\n${text}\n`)
    .join(`\n${'-'.repeat(80)}\n\n`);
}

/** Packs the package in `directory` as `npm pack` would; answers the file in `target`. Earlier versions are gone. */
export function packClient(directory: string, target: string): string {
  for (const name of readdirSync(target)) if (isPackage(name)) rmSync(join(target, name));
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name))
    .sort()
    .flatMap((file) => entry(`package/${relative(directory, file)}`, readFileSync(file)));
  const file = join(target, basename(paths.clientPackage));
  writeFileSync(file, gzipSync(Buffer.concat([...entries, Buffer.alloc(2 * block)]), { level: 9 }));
  return file;
}

function isPackage(name: string): boolean {
  return name.startsWith('kms-appliance-client-') && name.endsWith('.tgz');
}

const block = 512;

/** An entry of a tar archive (POSIX ustar): of nobody, for everybody to read, and without a time. */
function entry(name: string, content: Buffer): Buffer[] {
  if (name.length > 100) throw new Error(`a name of at most 100 characters was expected, got ${name}`);
  const header = Buffer.alloc(block);
  const octal = (value: number, at: number, length: number) =>
    header.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1');
  header.write(name, 0, 'latin1');
  octal(0o644, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(content.length, 124, 12);
  // The time that npm gives all that it packs: zip archives know none before 1980.
  octal(499_162_500, 136, 12);
  header.write('0', 156, 'latin1');
  header.write('ustar\x0000', 257, 'latin1');
  // The sum is made with blanks in its own place.
  header.fill(' ', 148, 156);
  octal(
    header.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  );
  return [header, content, Buffer.alloc((block - (content.length % block)) % block)];
}
