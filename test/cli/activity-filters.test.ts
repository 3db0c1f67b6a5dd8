// Filters of `kms activity search`: an empty answer says which of them name a thing that is not there, and callers go by
// the names that the table shows.
import assert from 'node:assert/strict';
import test from 'node:test';
import { type Desk, desk, pick, withKey } from './kms.ts';
import { servedDesk } from './served.ts';

const person = '--first-name A --last-name B';
const tty = { stderr: true };

interface Named {
  readonly keyid: string;
}

interface Records {
  readonly data: readonly { readonly action: string; readonly keyid: string }[];
}

async function peopled(): Promise<Desk & { readonly keyid: string }> {
  const d = await withKey(
    'keyring create payroll',
    'account create payments',
    `user create ruth --email ruth@x.example ${person}`,
  );
  const { keyid } = await d.json<Named>('apikey create --account payments --name nightly --flag keyring.list --json');
  return { ...d, keyid };
}

const searched = (d: Desk, filters: string) => d.json<Records>(`activity search --all --json ${filters}`);

test('a caller may be named as the table shows it: by the name of an API key or a user, or the end of an id', async () => {
  await using d = await servedDesk();
  await d.json('account create payments --json');
  const { keyid, key } = await d.json<Named & { key: string }>(
    'apikey create --account payments --name nightly --flag keyring.list --json',
  );
  const env = { KMS_SERVER: d.url, KMS_API_KEY: key };
  await d.json('keyring list --json', { env });
  const { data } = await searched(d, `--keyid ${keyid}`);
  assert.ok(data.length > 0);
  for (const name of ['nightly', `apik_…${keyid.slice(-6)}`]) {
    assert.deepEqual(await searched(d, `--keyid ${name}`), await searched(d, `--keyid ${keyid}`), name);
  }
  const others = (await searched(d, '--exclude-keyid nightly')).data;
  assert.ok(others.length > 0);
  assert.ok(others.every((each) => each.keyid !== keyid));
  await d.json('apikey create --account payments --name nightly --json');
  const { code, stdout, stderr } = await d.kms('activity search --keyid nightly');
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /^kms: 2 API keys or users are named by nightly; give the id of one: apik_\w+, apik_\w+\n$/);
});

test('what does not exist is told where nothing matches, with the name that was probably meant', async () => {
  await using d = await peopled();
  const nothing = 'kms: no activity matches\n';
  for (const [filters, doubt] of [
    ['--keyid ruht', 'there is no API key or user ruht; did you mean ruth?'],
    ['--keyid nightyl', 'there is no API key or user nightyl; did you mean nightly?'],
    ['--account paymets', 'there is no account paymets; did you mean payments?'],
    ['--account nosuch-at-all', 'there is no account nosuch-at-all'],
    ['--ring payrol', 'there is no keyring payrol; did you mean payroll?'],
    ['--action keyring.encypt', 'the appliance has no action keyring.encypt of its own; did you mean keyring.encrypt?'],
    ['--action *.delte', 'the appliance has no action *.delte of its own; did you mean *.delete?'],
    ['--action usr.*', 'the appliance has no action usr.* of its own; did you mean user.*?'],
  ] as const) {
    const { code, stdout, stderr } = await d.kms(`activity search ${filters}`, { tty });
    assert.deepEqual([code, stdout], [0, ''], filters);
    assert.deepEqual(stderr.split('\n').toSorted(), `${nothing}kms: ${doubt}\n`.split('\n').toSorted(), filters);
  }
  for (const filters of [
    '--ring payroll --action asset.read',
    `--keyid ${d.keyid}`,
    '--keyid network',
    '--account payments',
  ]) {
    assert.deepEqual(pick(await d.kms(`activity search ${filters}`, { tty })), [0, '', nothing], filters);
  }
});

test('what is excluded and does not exist is told, whatever matches', async () => {
  await using d = await peopled();
  const { code, stderr } = await d.kms('activity search --json --exclude-keyid ruht --exclude-action *.raed', { tty });
  assert.deepEqual(
    [code, stderr],
    [
      0,
      'kms: there is no API key or user ruht; did you mean ruth?\n' +
        'kms: the appliance has no action *.raed of its own; did you mean *.read?\n',
    ],
  );
});

test('records of what is deleted are found by its name without a word, and programs leave no record of names', async () => {
  await using d = await peopled();
  await d.json('keyring delete payroll --yes --json');
  const { code, stderr } = await d.kms('activity search --ring payroll --json', { tty });
  assert.deepEqual([code, stderr], [0, '']);
  const before = (await searched(d, '--action system.names')).data.length;
  const ran = await d.kms('activity search --ring payrol --account nobody --action keyring.encypt --json');
  assert.equal(JSON.parse(ran.stdout).data.length, 0);
  assert.match(
    ran.stderr,
    /^kms: the appliance has no action keyring\.encypt [^\n]+\n$/,
    'a closed list needs no request',
  );
  assert.equal((await searched(d, '--action system.names')).data.length, before);
});

test('everything about an API key is found by its name as by its id, and by nothing else beside', async () => {
  await using d = await desk();
  await d.json('init --json');
  const { keyid } = await d.json<{ keyid: string }>(
    'apikey create --account admin --name till --flag keyring.list --json',
  );
  await d.kms('apikey update till --flag keyring.create');
  const ids = async (about: string) =>
    (await d.json<{ data: { id: string }[] }>(`activity search --about ${about} --json`)).data.map(({ id }) => id);
  const byId = await ids(keyid);
  assert.ok(byId.length >= 2);
  assert.deepEqual(await ids('till'), byId);
  for (const other of ['--keyid till', '--account admin', '--ring till', '--object till']) {
    const { code, stderr } = await d.kms(`activity search --about till ${other}`);
    assert.equal(code, 2);
    assert.match(stderr, new RegExp(`^kms: --about and ${other.split(' ')[0]} exclude each other`));
  }
});
