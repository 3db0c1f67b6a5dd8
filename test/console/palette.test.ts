// The palette's entries: those that the user's flags allow, in their intended order.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client } from '../../src/client/client.ts';
import { askForEntries, foundEntries, type PaletteEntry, pageEntries } from '../../src/console/palette-entries.ts';
import { parseFlags } from '../../src/model/flags.ts';

const entry = (name: string, kind = 'Keyring', also = ''): PaletteEntry => ({ kind, name, also, page: 'keyring' });
const namesFound = (entries: readonly PaletteEntry[], typed: string): string[] =>
  foundEntries(entries, typed).map(({ name }) => name);

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

test('names are asked for page by page, and only where the flags let them be listed', async () => {
  const asked: [string, string | undefined][] = [];
  const list =
    (kind: string, items: readonly object[]) =>
    async (input: { cursor?: string } = {}) => {
      asked.push([kind, input.cursor]);
      const isLast = input.cursor === 'b';
      return {
        data: items,
        pagination: { limit: 1000, count: 1, hasMore: !isLast, ...(!isLast && { nextCursor: 'b' }) },
      };
    };
  // Cast: only the methods that the palette calls.
  const api = {
    listKeyrings: list('rings', [{ name: 'payroll', displayName: 'Payroll' }]),
    listTransitRings: list('transit', [
      { name: 'vault-1', displayName: 'Vault-1', custody: 'server', type: 'aes256-gcm96' },
    ]),
    listApiKeys: list('keys', [{ keyid: 'apik_a', name: '' }]),
    listUsers: list('users', [{ id: 'user_a', username: 'ada', displayName: 'Ada L' }]),
  } as unknown as Client;
  const entries: PaletteEntry[] = [];
  const ask = (flags: Record<string, boolean>) =>
    askForEntries(api, parseFlags(flags), (more) => entries.push(...more), { signal: new AbortController().signal });
  await ask({ 'keyring.payroll.*': true });
  assert.deepEqual([asked, entries], [[], []]);
  await ask({ '*': true });
  assert.equal(asked.length, 8);
  assert.deepEqual(foundEntries(entries, 'transit vault')[0], {
    kind: 'Transit ring',
    name: 'Vault-1',
    about: 'custody server, aes256-gcm96',
    also: '',
    page: 'transitRing',
    params: { name: 'vault-1' },
  });
  assert.deepEqual(namesFound(entries, 'apik_a').slice(0, 1), ['apik_a']);
  assert.deepEqual(foundEntries(entries, 'ada l')[0], {
    kind: 'User',
    name: 'ada',
    also: 'Ada L user_a',
    page: 'user',
    params: { username: 'ada' },
  });
  entries.length = 0;
  asked.length = 0;
  await ask({ 'transit.list': true });
  assert.deepEqual([...new Set(entries.map(({ kind }) => kind))], ['Transit ring']);
  assert.deepEqual([...new Set(asked.map(([kind]) => kind))], ['transit']);
});
