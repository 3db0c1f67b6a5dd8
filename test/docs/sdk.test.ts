// The page about the client library and its section in the README: each program in them runs unchanged but for the
// address, in a process of its own, with the built package, a real appliance, and only the features of Node.js 20; and
// the page's tables agree with the code.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { buildClient, clientName } from '../../build/client.ts';
import { stateHeader } from '../../src/model/names.ts';
import { servedDesk } from '../cli/served.ts';
import { programs } from './programs.ts';

const page = readFileSync(new URL('../../docs/sdk.md', import.meta.url), 'utf8');
const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

const desk = await servedDesk();
after(() => desk[Symbol.asyncDispose]());
const { app } = desk.appliance;
const served = app.fetch.bind(app);
app.fetch = async (request, env) => {
  const answer = await served(request, env);
  // Set as by an appliance with a data directory.
  answer.headers.set(stateHeader, `${'0a'.repeat(16)}.tenant_01m7y2xq8mywjby9aqs86mgmwf.1.7`);
  return answer;
};
await buildClient(desk.path('node_modules', clientName));
assert.equal((await desk.kms('keyring create payroll --private-key-out payroll.pem')).code, 0);
const salaries = randomBytes(1_000_000);
await writeFile(desk.path('salaries.txt'), salaries);

const olderEngine = new URL('older-engine.mjs', import.meta.url).href;
let count = 0;

/** Output of the program, line by line; it must print nothing on stderr and succeed. */
async function run(program: string): Promise<string[]> {
  const file = desk.path(`program-${++count}.mjs`);
  await writeFile(file, program.replaceAll('http://127.0.0.1:8080', desk.url));
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--import', olderEngine, file], {
    cwd: desk.dir,
    env: { KMS_API_KEY: desk.appliance.root.key },
  });
  assert.equal(stderr, '');
  return stdout.split('\n').slice(0, -1);
}

test('programs run here without what came after Node.js 20', async () => {
  const program = `console.log('fromHex' in Uint8Array, 'map' in [].values(), typeof navigator, Promise.withResolvers);`;
  assert.deepEqual(await run(program), ['false false undefined undefined']);
});

test('the program in the README makes a file that the command line decrypts', async () => {
  const [inNode = ''] = programs(readme);
  assert.deepEqual(await run(inNode), []);
  const { bytes, code } = await desk.kms('decrypt --private-key payroll.pem salaries.kms');
  assert.equal(code, 0);
  assert.ok(salaries.equals(bytes));
});

/** Programs for a page are left to test/browser/sdk.test.ts. */
const [begin = '', ...samples] = programs(page).filter((program) => !program.includes('document.'));
const expected: readonly (readonly [beginning: string, printed: RegExp])[] = [
  ["import { writeFile } from 'node:fs/promises';\nimport { rollbackWatch }", /^1$/],
  ['await client.createAccount', /^apik_\w{26} 53$/],
  ['const { ring } = await client.getKeyring', /^key_\w{26}$/],
  ['import { items, pages }', /^payroll\n\d+ keyring\.\w+$/],
  ['import { KmsError }', /^invalid name: .* \{\n {2}name: '.*'\n\}$/],
  ['import { createReadStream', /^asset_\w{26}\ntrue$/],
  ['import { decryptBytes', /^42 salaries payroll$/],
  ["import { encryptBytes, decryptBytes } from '@kms-appliance/client';\n\nconst { ring }", /^for the auditors$/],
  ["import { encryptBytes, decryptBytes } from '@kms-appliance/client';\n\nawait client.putConfig", /^in case true$/],
  ["import { writeFile } from 'node:fs/promises';\nimport { generateRingKey }", /^$/],
  ['import { publicKeyOf', /^true$/],
  ['import { unwrapRingKey }', /^32 0$/],
];

test('each sample of the page is expected here', () => {
  assert.deepEqual(
    samples.map((sample) => expected.findIndex(([beginning]) => sample.startsWith(beginning))),
    expected.map((_, at) => at),
  );
});

for (const [beginning, printed] of expected) {
  test(`the sample that begins with ${beginning}`, async () => {
    const sample = samples.find((each) => each.startsWith(beginning)) ?? '';
    assert.match((await run(begin + sample)).join('\n'), printed);
  });
}

test('what the samples made is right', async () => {
  assert.ok(salaries.equals(await readFile(desk.path('january.txt'))));
  const { code, bytes, stderr } = await desk.kms('decrypt --private-key payroll.pem january.kms');
  assert.deepEqual([code, salaries.equals(bytes)], [0, true], stderr);
  assert.match(stderr, /is valid/);
  assert.equal((await desk.kms('encrypt --ring bonuses --private-key bonuses.pem -o b.kms', { stdin: 'x' })).code, 0);
});

test('files of the command line open with the library', async () => {
  assert.equal((await desk.kms('encrypt --ring payroll --private-key payroll.pem -o cli.kms salaries.txt')).code, 0);
  const program = `import { writeFile } from 'node:fs/promises';
import { decryptBytes } from '@kms-appliance/client';
await writeFile('cli.txt', (await decryptBytes(await readFile('cli.kms'), { client, privateKey })).bytes);
`;
  assert.deepEqual(await run(begin + program), []);
  assert.ok(salaries.equals(await readFile(desk.path('cli.txt'))));
});

test('the tables name every option and every code', async () => {
  const source = async (name: string): Promise<string> =>
    readFile(new URL(`../../src/client/${name}`, import.meta.url), 'utf8');
  for (const [file, name] of [
    ['client.ts', 'ClientOptions'],
    ['file-streams.ts', 'EncryptStreamOptions'],
    ['file-streams.ts', 'DecryptStreamOptions'],
  ] as const) {
    const [, body = ''] = new RegExp(`interface ${name} \\{\\n([^}]*)\\n\\}`).exec(await source(file)) ?? [];
    const options = [...body.matchAll(/^ {2}readonly (\w+)/gm)].map(([, option]) => option);
    assert.ok(options.length > 3);
    for (const option of options) assert.match(page, new RegExp(`^\\| \`${option}\` \\|`, 'm'), `${name}: ${option}`);
  }
  const codes = [...(await source('failure.ts')).matchAll(/^ {2}(\d{3}): '([\w-]+)'/gm)];
  assert.ok(codes.length > 7);
  for (const [, status, code] of codes) {
    assert.match(page, new RegExp(`^\\| .*\`${code}\`.* \\| .*${status}`, 'm'), `${code} for ${status}`);
  }
});
