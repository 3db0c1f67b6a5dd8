// Builds dist/client, the client library as a package: a module for Node and browsers without imports, a small optional
// one beside it, their types, and the licences of everything in them. Also packs the same into the file that npm
// installs. Both are self-contained, so that they can be carried to where there is no network.
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
 * Upper limit of the module's size, in bytes. ML-KEM-768 and SHA-3, which hybrid keyrings need, take 16 kB of it; the
 * shapes that answers are checked against take 12 kB.
 */
export const sizeLimit = 106_000;

/** The name that programs import. No registry has it: the package is installed from its file. */
export const clientName = '@kms-appliance/client';

/** Entry points by module name. */
const clientModules = { index: paths.clientEntry, rollback: paths.clientRollback };

/** Builds into `directory`, replacing anything that was there. */
export async function buildClient(directory: string): Promise<void> {
  const draft = `${directory}.${process.pid}`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  try {
    const inputs = await bundleClient(draft);
    declareClient(draft);
    writeFileSync(join(draft, 'package.json'), `${JSON.stringify(packageJson(), null, 2)}\n`);
    copyFileSync(join(paths.root, 'LICENSE'), join(draft, 'LICENSE'));
    copyFileSync(join(paths.root, 'build/client-readme.md'), join(draft, 'README.md'));
    writeFileSync(join(draft, 'THIRD-PARTY-LICENSES'), licensesOf(inputs));
    rmSync(directory, { recursive: true, force: true });
    renameSync(draft, directory);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** Returns the names of all files in the bundles, relative to the project's root. */
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

/**
 * Emits the compiler's declarations of the entry points and all they refer to. Methods are replaced, so that the types
 * need no schemas.
 */
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
    // For resolvers of Node 10's time, which ignore `exports`.
    main: './index.js',
    types: './index.d.ts',
  };
}

function licensesOf(inputs: readonly string[]): string {
  return packagesIn(inputs)
    .map(({ name, version, license, text }) => `${name} ${version} (${license})\n\n${text}\n`)
    .join(`\n${'-'.repeat(80)}\n\n`);
}

/**
 * Packs the package in `directory` as `npm pack` would and returns the name of the file in `target`. Earlier versions
 * are deleted.
 */
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

/** An entry of a tar archive (POSIX ustar): no owner, readable by everyone, with npm's fixed time. */
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
  // The time that npm gives every file it packs: zip archives can't express any before 1980.
  octal(499_162_500, 136, 12);
  header.write('0', 156, 'latin1');
  header.write('ustar\x0000', 257, 'latin1');
  // The checksum is computed with its own field filled with blanks.
  header.fill(' ', 148, 156);
  octal(
    header.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  );
  return [header, content, Buffer.alloc((block - (content.length % block)) % block)];
}
