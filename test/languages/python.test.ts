// The Python programs of the developer guide: a client generated from the description, with the libraries that the
// guide names, reads the command line's files and writes files that it reads.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openApiDocument } from '../../src/description/openapi-document.ts';
import { version } from '../../src/version.ts';
import { commandOf, guideDesk, programOf } from './desk.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const generator = process.env.KMS_PYTHON_CLIENT || join(root, 'node_modules/.cache/python/bin/openapi-python-client');
const bin = dirname(generator);

const desk = await guideDesk();
after(() => desk[Symbol.asyncDispose]());
await writeFile(desk.path('openapi.json'), JSON.stringify(openApiDocument(version)));
const [, ...args] = commandOf('openapi-python-client generate');
const said = await desk.run(generator, args, { PATH: `${bin}:${process.env.PATH}` });

test('a client is generated, whole but for the one endpoint that answers lines', () => {
  assert.deepEqual(said.match(/parsing (GET|POST|PUT|PATCH|DELETE) \S+/g) ?? [], [
    'parsing POST /auth/activity/export',
  ]);
});

async function python(program: string): Promise<string> {
  await writeFile(desk.path('program.py'), program);
  return desk.run(join(bin, 'python3'), ['program.py']);
}

test('the program of the guide reads what the command line wrote', async () => {
  assert.equal(await python(programOf('python', desk.url)), '42 people, 42 salaries\n');
});

test('the other way round, the command line reads what Python wrote', async () => {
  const [imports = '', rest = ''] = programOf('python', desk.url).split('\nfile = ');
  const client = rest.slice(rest.indexOf('client = '), rest.indexOf('answer = '));
  const opened = rest.slice(rest.indexOf('wrapped = '), rest.indexOf('body = '));
  const program = `${imports.replace('Decryptor', 'Encryptor').replaceAll('decrypt', 'encrypt').replaceAll('DecryptBody', 'EncryptBody')}
${client}answer = encrypt.sync(client=client, body=EncryptBody(ringname="payroll"))
${opened}header = answer.header.encode()
prelude = b"kms-file\\x01" + len(header).to_bytes(2) + header
body = Cobblestone256Encryptor(key, prelude)
Path("python.kms").write_bytes(prelude + body.update("from Python: é".encode()) + body.finalize())
`;
  assert.equal(await python(program), '');
  const { code, stdout, stderr } = await desk.kms('decrypt --private-key payroll.pem python.kms');
  assert.deepEqual([code, stdout], [0, 'from Python: é'], stderr);
});

test('the client tells errors and lists pages', async () => {
  const program = `
from pathlib import Path
from kms_client import AuthenticatedClient
from kms_client.api.accounts import create_account, list_accounts
from kms_client.api.key_rings import get_keyring
from kms_client.models import CreateAccountBody

client = AuthenticatedClient("${desk.url}", token="${desk.appliance.root.key}")
for n in range(3):
    create_account.sync(client=client, body=CreateAccountBody(uid=f"python-{n}"))
uids, cursor = [], None
while True:
    page = list_accounts.sync(client=client, limit=2, **({"cursor": cursor} if cursor else {}))
    uids += [each.uid for each in page.data]
    if not page.pagination.has_more:
        break
    cursor = page.pagination.next_cursor
print([uid for uid in uids if uid.startswith("python")])
missing = get_keyring.sync_detailed("nothing", client=client)
print(missing.status_code.value, missing.parsed.message)
`;
  assert.equal(await python(program), "['python-0', 'python-1', 'python-2']\n404 there is no such keyring\n");
});
