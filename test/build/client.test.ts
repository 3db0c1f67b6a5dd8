// The client library as a package: how large it is, that it needs nothing, that strict programs compile against its
// types without the sources, and that those types are those of the sources.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { buildClient, sizeLimit } from '../../build/client.ts';
import { paths } from '../../build/paths.ts';
import { programs } from '../docs/programs.ts';

const home = mkdtempSync(join(tmpdir(), 'kms-client-'));
after(() => rmSync(home, { recursive: true, force: true }));
const package_ = join(home, 'node_modules/kms');
await buildClient(package_);
const files = readdirSync(package_, { recursive: true, withFileTypes: true })
  .filter((each) => each.isFile())
  .map((each) => join(each.parentPath, each.name));
const bundle = readFileSync(join(package_, 'index.js'), 'utf8');

test('it is one module under the limit, without an import and without the schemas', async () => {
  assert.equal(sizeLimit, 60_000);
  const { size } = statSync(join(package_, 'index.js'));
  assert.ok(size < sizeLimit, `${size} bytes`);
  assert.doesNotMatch(bundle, /\bimport\b|\brequire\(|\bzod\b|_zod|node:/i);
  const kms = await import(pathToFileURL(join(package_, 'index.js')).href);
  assert.deepEqual(Object.keys(kms).sort(), [
    'KmsError',
    'createClient',
    'decryptBytes',
    'decryptStream',
    'encryptBytes',
    'encryptStream',
    'errorCodes',
    'faultOf',
    'generateRingKey',
    'items',
    'pages',
    'publicKeyOf',
    'readPrivateKey',
    'unwrapRingKey',
  ]);
});

test('it names no place where it was made, and the same sources give the same package', async () => {
  for (const file of files) assert.ok(!readFileSync(file, 'utf8').includes(paths.root.slice(0, -1)), file);
  const again = join(home, 'again');
  await buildClient(again);
  for (const file of files)
    assert.equal(readFileSync(file.replace(package_, again), 'utf8'), readFileSync(file, 'utf8'));
});

test('the project exports what is built', () => {
  const { exports, version } = JSON.parse(readFileSync(join(paths.root, 'package.json'), 'utf8'));
  assert.deepEqual(exports, { './client': { types: './dist/client/index.d.ts', default: './dist/client/index.js' } });
  const own = JSON.parse(readFileSync(join(package_, 'package.json'), 'utf8'));
  assert.deepEqual([own.name, own.version, own.dependencies], ['kms', version, undefined]);
});

test('the licences of what is in it are there', () => {
  const texts = readFileSync(join(package_, 'THIRD-PARTY-LICENSES'), 'utf8');
  for (const name of ['ciphers', 'curves', 'hashes'])
    assert.match(texts, new RegExp(`^@noble/${name} .*\\(MIT\\)$`, 'm'));
  assert.match(readFileSync(join(package_, 'LICENSE'), 'utf8'), /Apache License/);
});

/** What the compiler says of a strict program that uses the package. */
function compile(name: string, program: string, options: object): string {
  writeFileSync(join(home, 'package.json'), '{"type":"module"}');
  writeFileSync(join(home, `${name}.ts`), program);
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
    files: [`${name}.ts`],
  };
  writeFileSync(join(home, `${name}.json`), JSON.stringify(config));
  const tsc = join(paths.root, 'node_modules/typescript/bin/tsc');
  return spawnSync(process.execPath, [tsc, '-p', `${name}.json`], { cwd: home, encoding: 'utf8' }).stdout;
}

const everywhere = `
import {
  type AnswerTo, type Client, createClient, decryptBytes, decryptStream, encryptBytes, encryptStream, faultOf,
  generateRingKey, type InputOf, items, type KeyRing, KmsError, pages, publicKeyOf, readPrivateKey, unwrapRingKey,
} from 'kms/client';

export const client: Client = createClient({ baseUrl: 'https://kms.example', apiKey: 'kms_', timeout: 5, retries: 0 });
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
unwrapRingKey({ privateKey: readPrivateKey(privateKey, 'it'), key: answer.key }).fill(0);
publicKeyOf(readPrivateKey(privateKey, 'it')).trim();
const { bytes } = await encryptBytes(new Uint8Array(3), { client, ring: 'payroll', privateKey });
const whole = await decryptBytes(bytes, { client, privateKey: async ({ ringname }) => ringname, allowInvalidAsset: true });
export const valid: boolean | undefined = whole.answer.asset?.valid;
const { body } = await fetch('https://files.example');
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

test('a strict program for browsers compiles', () => {
  assert.equal(compile('browser', everywhere, { lib: ['es2022', 'dom', 'dom.iterable', 'dom.asynciterable'] }), '');
});

test('a strict program for Node compiles, and so does that in the README', () => {
  const [program = ''] = programs(readFileSync(join(paths.root, 'README.md'), 'utf8'));
  assert.equal(compile('node', everywhere, { lib: ['es2022'], types, typeRoots }), '');
  assert.equal(compile('readme', program, { lib: ['es2022'], types, typeRoots }), '');
});

test('where a project has the types of Node and of browsers, a cast joins them', () => {
  const program = `
import { createReadStream, createWriteStream } from 'node:fs';
import { Readable, Writable } from 'node:stream';
import { type Client, encryptStream } from 'kms/client';
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
import type { Client as Built } from 'kms/client';
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

/** Those of the project itself, under which its sources compile. */
function projectOptions(): object {
  const tsc = join(paths.root, 'node_modules/typescript/bin/tsc');
  const shown = execFileSync(process.execPath, [tsc, '--showConfig', '-p', paths.root], { encoding: 'utf8' });
  return JSON.parse(shown).compilerOptions;
}
