// The palette's entries: those that the user's flags allow, in their intended order.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keptNames } from '../../src/console/kept-names.ts';
import {
  countLine,
  entriesOf,
  foundEntries,
  type PaletteEntry,
  pageEntries,
} from '../../src/console/palette-entries.ts';
import { parseFlags } from '../../src/model/flags.ts';

const entry = (name: string, kind = 'Keyring', also = ''): PaletteEntry => ({ kind, name, also, page: 'keyring' });
const namesFound = (entries: readonly PaletteEntry[], typed: string): string[] =>
  foundEntries(entries, typed).shown.map(({ name }) => name);

test('what is called so comes first, then what begins so, then what has it', () => {
  const entries = [entry('old-pay'), entry('Payroll'), entry('ledger'), entry('pay'), entry('x', 'User', 'Pay Master')];
  assert.deepEqual(namesFound(entries, ' PAY '), ['pay', 'Payroll', 'old-pay', 'x']);
  assert.deepEqual(namesFound(entries, 'user pay'), ['x'], 'every word, wherever it stands');
  assert.deepEqual(namesFound(entries, '.*'), []);
  assert.deepEqual(
    namesFound([...entries, entry('Overview', 'Page')], ''),
    ['Overview'],
    'pages while nothing is typed',
  );
  const many = Array.from({ length: 5000 }, (_, index) => entry(`ring-${index}`));
  assert.equal(namesFound(many, 'ring').length, 50);
  assert.deepEqual(namesFound(many, 'ring-4999'), ['ring-4999']);
  const line = (typed: string) => countLine(foundEntries(many, typed), false);
  const keys = 'Choose with the arrow keys, open with Enter.';
  assert.equal(line('ring'), `The first 50 of 5,000 places. Type more to find others. ${keys}`);
  assert.equal(line('ring-498'), `11 places. ${keys}`);
  assert.equal(line('ring-4999'), `1 place. ${keys}`);
  assert.equal(line('lost'), 'Nothing that you may see has this name.');
  assert.equal(countLine(foundEntries(many, 'lost'), true), 'Looking…');
});

test('pages are those that somebody may see something on', () => {
  const pages = [
    { name: 'home' },
    { name: 'keyrings', needs: ['keyring.list'] },
    { name: 'newKeyring' },
    { name: 'keyring' },
    { name: 'asym', needs: ['asym.create', 'asym.read'] },
    { name: 'encrypt', needs: ['keyring.encrypt'] },
  ] as const;
  const of = (...flags: string[]): string[] =>
    pageEntries(pages, parseFlags(Object.fromEntries(flags.map((flag) => [flag, true])))).map(({ page }) => page);
  assert.deepEqual(of(), ['home']);
  assert.deepEqual(of('keyring.create', 'keyring.payroll.encrypt'), ['home', 'newKeyring', 'encrypt']);
  assert.deepEqual(of('asym.devices.read'), ['home', 'asym']);
  assert.deepEqual(of('*'), ['home', 'keyrings', 'newKeyring', 'asym', 'encrypt']);
});

const known = {
  keyrings: [{ id: 'ring_a', name: 'payroll', displayName: 'Payroll', kem: 'x25519' as const, offlineDecrypt: false }],
  managedKeys: [{ name: 'vault-1', displayName: 'Vault-1', type: 'aes256-gcm96' }],
  apikeys: [{ keyid: 'apik_a', name: '', active: true }],
  users: [{ id: 'user_a', username: 'ada', displayName: 'Ada L' }],
};

test('names of each kind become entries that lead to their pages', () => {
  const entries = entriesOf(known);
  assert.deepEqual(foundEntries(entries, 'managed vault').shown[0], {
    kind: 'Managed key',
    name: 'Vault-1',
    about: 'custody server, aes256-gcm96',
    also: '',
    page: 'managedKey',
    params: { name: 'vault-1' },
  });
  assert.deepEqual(namesFound(entries, 'apik_a').slice(0, 1), ['apik_a']);
  assert.deepEqual(foundEntries(entries, 'ada l').shown[0], {
    kind: 'User',
    name: 'ada',
    also: 'Ada L user_a',
    page: 'user',
    params: { username: 'ada' },
  });
  assert.deepEqual(entriesOf({}), []);
});

test('names are asked for once for a session, anew after a change or a while, and never where none may be listed', async () => {
  let asked = 0;
  let changes = 0;
  let now = 0;
  let fails = false;
  const getNames = async () => {
    asked++;
    if (fails) throw new Error('away');
    return known;
  };
  const names = keptNames(
    { getNames },
    () => changes,
    () => now,
  );
  assert.deepEqual(await names.get(parseFlags({ 'keyring.payroll.*': true })), {});
  assert.equal(asked, 0);
  const may = parseFlags({ 'key.list': true });
  assert.deepEqual(await Promise.all([names.get(may), names.get(may)]), [known, known]);
  assert.equal(asked, 1);
  changes++;
  await names.get(may);
  assert.equal(asked, 2, 'after a change');
  now += 299_999;
  await names.get(may);
  assert.equal(asked, 2);
  now += 1;
  await names.get(may);
  assert.equal(asked, 3, 'after five minutes');
  fails = true;
  changes++;
  assert.deepEqual(await names.get(may), {});
  fails = false;
  assert.deepEqual(await names.get(may), known, 'a failure is not kept');
});
