// The client library as a package: npm installs it from its file without a network, its size is limited, it has no
// dependencies, strict programs compile against its types under every module resolution, and those types agree with the
// sources.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { buildClient, clientName, packClient, sizeLimit } from '../../build/client.ts';
import { paths } from '../../build/paths.ts';
import { programs } from '../docs/programs.ts';

const home = mkdtempSync(join(tmpdir(), 'kms-client-'));
after(() => rmSync(home, { recursive: true, force: true }));
const built = join(home, 'built');
await buildClient(built);
const archive = packClient(built, home);
const package_ = join(home, 'node_modules', clientName);
const installed = spawnSync('npm', ['install', archive], {
  cwd: home,
  encoding: 'utf8',
  // An address where nothing answers.
  env: { ...process.env, HOME: home, npm_config_registry: 'http://127.0.0.1:9', npm_config_audit: 'false' },
});
const filesIn = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name));
const files = filesIn(package_);
const bundle = readFileSync(join(package_, 'index.js'), 'utf8');

test('npm installs the file in an empty directory without a network, and nothing else with it', () => {
  assert.equal(installed.status, 0, installed.stderr);
  assert.deepEqual(
    files.map((file) => relative(package_, file)).sort(),
    filesIn(built)
      .map((file) => relative(built, file))
      .sort(),
  );
  for (const file of files) assert.deepEqual(readFileSync(file), readFileSync(file.replace(package_, built)), file);
  const others = readdirSync(join(home, 'node_modules')).filter((name) => !name.startsWith('.'));
  assert.deepEqual([others, readdirSync(join(home, 'node_modules/@kms-appliance'))], [['@kms-appliance'], ['client']]);
});

test('the file holds what npm would pack, and is itself always the same', () => {
  const { stdout } = spawnSync('npm', ['pack', '--dry-run', '--json'], { cwd: built, encoding: 'utf8' });
  const said = JSON.parse(stdout);
  const packed = Array.isArray(said) ? said[0] : said[clientName];
  const names = packed.files.map(({ path }: { path: string }) => path).sort();
  const listed = execFileSync('tar', ['-tvzf', archive], { encoding: 'utf8', env: { ...process.env, TZ: 'UTC' } });
  const lines = listed.trimEnd().split('\n');
  assert.deepEqual(lines.map((line) => line.replace(/^.* package\//, '')).sort(), names);
  for (const line of lines) assert.match(line, /^-rw-r--r-- 0\/0 .* 1985-10-26 /);
  assert.equal(packed.filename, relative(home, archive));
  const elsewhere = join(home, 'elsewhere');
  mkdirSync(elsewhere);
  writeFileSync(join(elsewhere, 'kms-appliance-client-0.0.9.tgz'), 'earlier');
  assert.deepEqual(readFileSync(packClient(package_, elsewhere)), readFileSync(archive));
  assert.deepEqual(readdirSync(elsewhere), [relative(home, archive)]);
});

test('it is one module under the limit, without an import and without the schemas', async () => {
  assert.equal(sizeLimit, 106_000);
  const { size } = statSync(join(package_, 'index.js'));
  assert.ok(size < sizeLimit, `${size} bytes`);
  assert.ok(statSync(archive).size < 86_000, `${statSync(archive).size} bytes`);
  assert.doesNotMatch(bundle, /\bimport\b(?!")|\brequire\(|\bzod\b|_zod|node:/i);
  const kms = await import(pathToFileURL(join(package_, 'index.js')).href);
  assert.deepEqual(Object.keys(kms).sort(), [
    'KmsError',
    'createClient',
    'decryptBytes',
    'decryptStream',
    'encryptBytes',
    'encryptStream',
    'faultOf',
    'generateRingKey',
    'items',
    'pages',
    'publicKeyOf',
    'readPrivateKeys',
    'unwrapRingKey',
  ]);
});

test('the module beside it stands alone too, and is small', async () => {
  const file = join(package_, 'rollback.js');
  assert.ok(statSync(file).size < 3_000, `${statSync(file).size} bytes`);
  assert.doesNotMatch(readFileSync(file, 'utf8'), /\bimport\b|\brequire\(|node:/);
  const rollback = await import(pathToFileURL(file).href);
  assert.deepEqual(Object.keys(rollback).sort(), ['formatState', 'isLater', 'parseState', 'rollbackWatch']);
});

test('it names no place where it was made, and the same sources give the same package', async () => {
  for (const file of files) assert.ok(!readFileSync(file, 'utf8').includes(paths.root.slice(0, -1)), file);
  const again = join(home, 'again');
  await buildClient(again);
  for (const file of files)
    assert.equal(readFileSync(file.replace(package_, again), 'utf8'), readFileSync(file, 'utf8'));
});

test('it has a name of its own, the version of the project, and depends on nothing', () => {
  const { version } = JSON.parse(readFileSync(join(paths.root, 'package.json'), 'utf8'));
  const own = JSON.parse(readFileSync(join(package_, 'package.json'), 'utf8'));
  assert.deepEqual([own.name, own.version, own.dependencies], ['@kms-appliance/client', version, undefined]);
});

test('the error codes in its README are those that there are', () => {
  const readme = readFileSync(join(package_, 'README.md'), 'utf8');
  const errors = readFileSync(join(paths.root, 'src/errors.ts'), 'utf8');
  const codes = [...readme.matchAll(/^\| (`.*?`) \|/gm)].flatMap(
    ([, cell = '']) => cell.match(/(?<=`)[\w-]+(?=`)/g) ?? [],
  );
  const others = codes.filter((code) => code !== 'code' && !errors.includes(`  | '${code}'`));
  assert.deepEqual(others, []);
  assert.ok(codes.length > 8);
});

test('the licences of what is in it are there', () => {
  const texts = readFileSync(join(package_, 'THIRD-PARTY-LICENSES'), 'utf8');
  for (const name of ['noble/ciphers', 'noble/curves', 'noble/hashes', 'scure/base'])
    assert.match(texts, new RegExp(`^@${name} .*\\(MIT\\)$`, 'm'));
  assert.match(readFileSync(join(package_, 'LICENSE'), 'utf8'), /Apache License/);
});

/** Compiler output for a strict program that uses the package. */
function compile(name: string, program: string, options: object): string {
  writeFileSync(join(home, `${name}.mts`), program);
  const config = {
    compilerOptions: {
      strict: true,
      skipLibCheck: false,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      target: 'es2022',
      module: 'nodenext',
      noEmit: true,
      types: [],
      ...options,
    },
    files: [`${name}.mts`],
  };
  writeFileSync(join(home, `${name}.json`), JSON.stringify(config));
  const tsc = join(paths.root, 'node_modules/typescript/bin/tsc');
  return spawnSync(process.execPath, [tsc, '-p', `${name}.json`], { cwd: home, encoding: 'utf8' }).stdout;
}

const everywhere = `
import {
  type AnswerTo, type Client, createClient, decryptBytes, decryptStream, encryptBytes, encryptStream, faultOf,
  generateRingKey, type InputOf, items, type KeyRing, KmsError, pages, publicKeyOf, readPrivateKeys, unwrapRingKey,
} from '@kms-appliance/client';
import { rollbackWatch, type SeenState } from '@kms-appliance/client/rollback';

const seen: SeenState[] = [];
const memory = { load: async () => seen, save: async (state: SeenState) => void seen.push(state) };
const watch = rollbackWatch(memory, { onOlder: (now, before) => void [now.sequence.toFixed(), before.epoch] });
export const client: Client = createClient({
  baseUrl: 'https://kms.example', apiKey: 'kms_', timeout: 5, retries: 0, watch,
});
const { privateKey, publicKey } = generateRingKey();
const { ring } = await client.createKeyring({ name: 'payroll', publicKey });
export const kept: KeyRing = ring;
await client.listKeyrings();
await client.logout();
for await (const each of items(client.listKeyrings, {})) each.displayName.trim();
for await (const each of items(client.listKeys, { ringname: 'payroll', id: true })) each.id.trim();
for await (const { data, pagination } of pages(client.searchActivity, { ring: 'payroll', limit: 5 })) {
  data[0]?.ringname.trim();
  pagination.count.toFixed();
}
const input: InputOf<'encrypt'> = { ringname: 'payroll', asset: { data: { a: 1 } } };
const answer: AnswerTo<'encrypt'> = await client.encrypt(input, { signal: AbortSignal.timeout(5) });
answer.asset?.parents[0]?.trim();
const keys = readPrivateKeys(privateKey, 'it');
(await unwrapRingKey({ privateKey: keys, key: answer.key })).fill(0);
for (const each of keys) publicKeyOf(each).trim();
const { bytes } = await encryptBytes(new Uint8Array(3), { client, ring: 'payroll', privateKey });
const whole = await decryptBytes(bytes, { client, privateKey: async ({ ringname }) => ringname, allowInvalidAsset: true });
export const valid: boolean | undefined = whole.answer.asset?.valid;
const { body } = await fetch('https://files.example');
const alone: string = (await decryptBytes(bytes, { offline: true, privateKey })).answer.header;
void [alone, decryptStream({ offline: true, privateKey: keys })];
const decryption = decryptStream({ client, privateKey });
if (body) await new Response(body.pipeThrough(encryptStream({ client, ring: 'r', privateKey })).pipeThrough(decryption)).text();
try {
  await client.getKeyring({ ringname: 'payroll' });
} catch (error) {
  if (error instanceof KmsError && error.code === 'not-found') error.fields?.ringname?.trim();
  faultOf(error)?.trim();
}
// @ts-expect-error: a name is needed
client.createKeyring({});
// @ts-expect-error: a ring is needed
items(client.listKeys, {});
// @ts-expect-error: there is no such endpoint
client.nothing();
// @ts-expect-error: there is no such code
export const wrong = (error: KmsError) => error.code === 'not found';
`;

const typeRoots = [join(paths.root, 'node_modules/@types')];
const types = ['node'];

test('it compiles in every way that TypeScript finds modules, and what it makes runs', () => {
  const ways = [
    { module: 'node16', moduleResolution: 'node16' },
    { module: 'node18' },
    { module: 'node20' },
    { module: 'nodenext', moduleResolution: 'nodenext' },
    { module: 'esnext', moduleResolution: 'bundler' },
    { module: 'preserve' },
  ];
  const program = `
import { createClient, generateRingKey, KmsError, publicKeyOf, readPrivateKeys } from '${clientName}';
const client = createClient({ baseUrl: 'http://127.0.0.1:9', retries: 0 });
const pair = generateRingKey();
const why: unknown = await client.getKeyring({ ringname: 'payroll' }).catch((error: unknown) => error);
const [read] = readPrivateKeys(pair.privateKey, 'it');
const same: boolean = read !== undefined && publicKeyOf(read) === pair.publicKey;
console.log(why instanceof KmsError && why.code, same);
`;
  for (const [at, way] of ways.entries()) {
    const lib = ['es2022', 'dom', 'dom.iterable', 'dom.asynciterable'];
    const name = `way-${at}`;
    assert.equal(compile(`${name}-all`, everywhere, { lib, ...way }), '', JSON.stringify(way));
    assert.equal(compile(name, program, { lib, ...way, noEmit: false, outDir: `out-${at}` }), '', JSON.stringify(way));
    const made = readdirSync(join(home, `out-${at}`))[0] ?? '';
    const { stdout, stderr } = spawnSync(process.execPath, [join(home, `out-${at}`, made)], { encoding: 'utf8' });
    assert.deepEqual([stdout, stderr], ['unavailable true\n', '']);
  }
});

test('a strict program for browsers compiles', () => {
  assert.equal(compile('browser', everywhere, { lib: ['es2022', 'dom', 'dom.iterable', 'dom.asynciterable'] }), '');
});

test('a strict program for Node compiles, and so do those in the READMEs', () => {
  const [program = ''] = programs(readFileSync(join(paths.root, 'README.md'), 'utf8'));
  assert.equal(compile('node', everywhere, { lib: ['es2022'], types, typeRoots }), '');
  assert.equal(compile('readme', program, { lib: ['es2022'], types, typeRoots }), '');
  const [own = ''] = programs(readFileSync(join(package_, 'README.md'), 'utf8'));
  assert.equal(compile('own', own, { lib: ['es2022'], types, typeRoots }), '');
});

test('where a project has the types of Node and of browsers, a cast joins them', () => {
  const program = `
import { createReadStream, createWriteStream } from 'node:fs';
import { Readable, Writable } from 'node:stream';
import { type Client, encryptStream } from '@kms-appliance/client';
export async function run(client: Client, privateKey: string): Promise<void> {
  const source = Readable.toWeb(createReadStream('a')) as ReadableStream<Uint8Array>;
  const encryption = encryptStream({ client, ring: 'r', privateKey });
  await source.pipeThrough(encryption).pipeTo(Writable.toWeb(createWriteStream('b')));
}
`;
  assert.equal(compile('both', program, { types, typeRoots }), '');
});

test('its types are those of the sources', () => {
  const source = JSON.stringify(join(paths.root, 'src/client/client.ts'));
  const program = `
import type { Client as Built } from '@kms-appliance/client';
import type { Client } from ${source};

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
type Inputs<C extends Record<keyof C, (...args: never) => unknown>> = { [Id in keyof C]: Parameters<C[Id]>[0] };
type Answers<C extends Record<keyof C, (...args: never) => unknown>> = { [Id in keyof C]: Awaited<ReturnType<C[Id]>> };

export const names: Same<keyof Built, keyof Client> = true;
export const taken = (inputs: Inputs<Built>): Inputs<Client> => inputs;
export const given = (answers: Answers<Built>): Answers<Client> => answers;
`;
  const options = { ...projectOptions(), noEmit: true, types, typeRoots };
  assert.equal(compile('same', program, options), '');
});

/** Options under which the project's own sources compile. */
function projectOptions(): object {
  const tsc = join(paths.root, 'node_modules/typescript/bin/tsc');
  const shown = execFileSync(process.execPath, [tsc, '--showConfig', '-p', paths.root], { encoding: 'utf8' });
  return JSON.parse(shown).compilerOptions;
}
