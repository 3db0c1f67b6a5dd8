// A managed key's life in the console: made for a purpose, used by programs, rotated, set up, given aliases, suspended
// and resumed, deleted by its name and brought back.
import assert from 'node:assert/strict';
import { constants, generateKeyPairSync, privateDecrypt, publicEncrypt, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { servedAppliance } from './appliance.ts';
import { goTo, password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
const { call } = appliance;
await appliance.addUser('ada', password, { flags: { '*': true } });
const { data: accounts } = (await call('GET', '/auth/accounts')).body;

/** Widths and colours in which pages of managed keys are looked at. */
const looks = [390, 820, 1280].flatMap((width) => (['light', 'dark'] as const).map((scheme) => ({ scheme, width })));

const keyOf = async (name: string) => (await call('GET', `/managed-keys/${name}`)).body.key;

test('a managed key is made by what it is for, with uses and aliases', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/managed-keys');
  await page.getByRole('link', { name: 'New managed key' }).click();
  await page.getByRole('heading', { name: 'New managed key', level: 1 }).waitFor();
  await page.locator('[data-back]').getByText('Managed keys').waitFor();
  await page.getByLabel('Name', { exact: true }).fill('Signer');
  await page.getByRole('radio', { name: 'Sign', exact: true }).check();
  await page.getByLabel('Type').selectOption('ecdsa-p384');
  await page.getByRole('checkbox', { name: 'Verify' }).uncheck();
  await page.getByRole('checkbox', { name: 'Sign' }).uncheck();
  await page.getByRole('button', { name: 'Create the managed key' }).click();
  await page.getByText('Choose at least one use.').waitFor();
  await page.getByRole('checkbox', { name: 'Sign' }).check();
  await page.getByText('More', { exact: true }).click();
  await page.getByLabel('Aliases').fill('app/release one two!');
  await page.getByRole('button', { name: 'Create the managed key' }).click();
  await page.getByText('Letters, digits, dots, dashes, underscores and slashes').waitFor();
  await looksRight(page, 'new-managed-key', looks);
  await page.getByLabel('Aliases').fill('app/release\none');
  await page.getByRole('button', { name: 'Create the managed key' }).click();
  await page.getByRole('heading', { name: 'Signer', level: 1 }).waitFor();
  const signer = await keyOf('signer');
  assert.deepEqual([signer.type, signer.uses, signer.exportable], ['ecdsa-p384', ['sign'], false]);
  assert.deepEqual([...signer.aliases].sort(), ['app/release', 'one']);
  await page.getByText('never leaves the service').waitFor();

  await goTo(page, '/console/new/keyring?kind=key');
  await page.getByLabel('Name', { exact: true }).fill('Wrapper');
  await page.getByRole('checkbox', { name: 'Wrap keys', exact: true }).check();
  await page.getByText('More', { exact: true }).click();
  await page.getByLabel('May be exported').check();
  await page.getByRole('button', { name: 'Create the managed key' }).click();
  await page.getByRole('heading', { name: 'Wrapper', level: 1 }).waitFor();
  const wrapper = await keyOf('wrapper');
  assert.deepEqual(wrapper.uses, ['encrypt', 'decrypt', 'wrap', 'export']);

  await goTo(page, '/console/new/keyring?kind=key');
  await page.getByLabel('Name', { exact: true }).fill('Stored');
  await page.getByRole('radio', { name: 'Keep a secret' }).check();
  await page.getByRole('button', { name: 'Create the managed key' }).click();
  await page.getByRole('heading', { name: 'Stored', level: 1 }).waitFor();
  const stored = await keyOf('stored');
  assert.deepEqual([stored.type, stored.uses, stored.exportable], ['secret', ['export'], true]);

  await goTo(page, '/console/managed-keys');
  const row = page.getByRole('row').filter({ hasText: 'Signer' });
  for (const text of ['ecdsa-p384', 'active', 'Sign']) await row.getByText(text, { exact: true }).waitFor();
  await looksRight(page, 'managed-keys', looks);
  assert.deepEqual(troubles, []);
});

test('a managed key is rotated and set up; what it may not do is refused', async () => {
  await call('POST', '/managed-keys', { name: 'Unseal', exportable: true });
  const items = [{ plaintext: 'aGVsbG8=' }];
  const encrypted = (await call('POST', '/managed-keys/unseal/encrypt', { items })).body;
  const decrypts = async () => (await call('POST', '/managed-keys/unseal/decrypt', encrypted)).body.items?.[0];
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/managed-keys');
  await page.getByRole('row').filter({ hasText: 'aes256-gcm' }).getByRole('link', { name: 'Unseal' }).click();
  await page.getByRole('heading', { name: 'Unseal', level: 1 }).waitFor();
  await page.getByText('server: the service holds its keys and can use them').waitFor();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('dialog').getByText('Its deletion is not allowed. Tick “May be deleted”').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Rotate…' }).click();
  await page.getByRole('dialog').getByText('1 caller used it in the last 24 hours').waitFor();
  await page.getByRole('button', { name: 'Rotate the managed key' }).click();
  await page.getByRole('status').filter({ hasText: 'It has the new version 2.' }).waitFor();
  const versions = page.getByRole('table', { name: 'Versions of unseal' });
  await versions.getByRole('row').filter({ hasText: 'primary' }).getByText('2').first().waitFor();
  assert.equal(await versions.getByRole('row').count(), 3);

  await page.getByRole('button', { name: 'Change settings' }).click();
  await page.getByLabel('Decrypts from version').fill('3');
  await page.getByLabel('Encrypts from version').fill('x');
  await page.getByLabel('Age at which a version is replaced').fill('59m');
  await page.getByLabel('Tags').fill('{"team": 1}');
  await page.getByRole('button', { name: 'Save settings' }).click();
  await page.getByText('Enter a whole number from 1 to 2.').waitFor();
  await page.getByText('Enter a whole number from 0 to 2.').waitFor();
  await page.getByText('Enter an age of at least 1h, such as 12h or 90d.').waitFor();
  await page.getByText('Enter a text for every tag.').waitFor();
  await page.getByLabel('Decrypts from version').fill('2');
  await page.getByLabel('Encrypts from version').fill('1');
  await page.getByLabel('Age at which a version is replaced').fill('90d');
  await page.getByLabel('Tags').fill('{"team": "payments"}');
  await page.getByLabel('May be deleted').check();
  await page.getByLabel('May be exported').uncheck();
  await page.getByRole('button', { name: 'Save settings' }).click();
  await page.getByText('Enter 0, or at least the version above.').waitFor();
  await page.getByLabel('Encrypts from version').fill('0');
  await page.getByRole('button', { name: 'Save settings' }).click();
  const refusal = page.getByRole('dialog', { name: 'Refuse versions before 2?' });
  await refusal.getByText('1 caller used version 1').waitFor();
  await refusal.getByRole('listitem').filter({ hasText: 'encrypting' }).waitFor();
  await looksRight(page, 'managed-key-refuse', looks);
  await refusal.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('Nothing has been saved.').waitFor();
  assert.equal((await keyOf('unseal')).minDecryptVersion, 1);
  await page.getByRole('button', { name: 'Save settings' }).click();
  await refusal.getByRole('button', { name: 'Refuse them' }).click();
  await page.getByText('90d', { exact: true }).waitFor();
  const key = await keyOf('unseal');
  assert.deepEqual([key.minDecryptVersion, key.minEncryptVersion, key.deletionAllowed], [2, 0, true]);
  assert.deepEqual([key.rotateAfter, key.exportable, key.tags], [90 * 86_400, false, { team: 'payments' }]);
  assert.match((await decrypts()).error, /too old/);
  await page.getByText('team: payments').waitFor();
  await page.getByText('What versions before 2 made is refused.').waitFor();
  await page.getByRole('button', { name: 'Change settings' }).click();
  assert.equal(await page.getByLabel('May be exported').count(), 0, 'nobody gives it back');
  await page.getByLabel('Decrypts from version').fill('1');
  await page.getByRole('button', { name: 'Save settings' }).click();
  await page.getByText('What any version made can still be decrypted.').waitFor();
  assert.deepEqual(await decrypts(), items[0]);

  await page.getByLabel('New alias').fill('no alias');
  await page.getByRole('button', { name: 'Add the alias' }).click();
  await page.getByText('Letters, digits, dots, dashes, underscores and slashes').waitFor();
  await page.getByLabel('New alias').fill('App/DB');
  await page.getByRole('button', { name: 'Add the alias' }).click();
  await page.getByRole('status').filter({ hasText: 'It is also called app/db now.' }).waitFor();
  assert.deepEqual((await keyOf('unseal')).aliases, ['app/db']);
  await page.getByRole('button', { name: 'Remove the alias app/db' }).click();
  await page.getByRole('status').filter({ hasText: 'It is no longer called app/db.' }).waitFor();
  assert.deepEqual((await keyOf('unseal')).aliases, []);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByRole('button', { name: 'Remove the alias app/db' }).waitFor();
  await looksRight(page, 'managed-key', looks);
  assert.deepEqual(troubles, []);
});

test('before a key is suspended or deleted, those who use it are named; then it is done all the same', async () => {
  const flags = { 'key.tokens.mac': true, 'key.tokens.verify': true };
  const { key: secret } = (await call('POST', '/auth/apikey', { accountId: accounts[0].id, name: 'webhooks', flags }))
    .body;
  await call('POST', '/managed-keys', { name: 'Tokens', type: 'hmac-sha256', deletionAllowed: true });
  const mac = async () => (await call('POST', '/managed-keys/tokens/mac', { input: 'aGk=' }, secret)).status;
  for (let i = 0; i < 3; i++) assert.equal(await mac(), 200);

  const { page, troubles } = await visitAs(appliance, 'ada', '/console/managed-keys/tokens');
  const users = page.getByRole('table', { name: 'Who uses tokens' });
  const user = users.getByRole('row').filter({ hasText: 'API key webhooks' });
  for (const text of ['this service’s own API', 'MACs', '3', 'just now']) {
    await user.getByText(text, { exact: true }).waitFor();
  }
  await page.getByRole('button', { name: 'Suspend…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('1 caller used it in the last 24 hours').waitFor();
  await dialog.getByRole('link', { name: 'API key webhooks' }).waitFor();
  await looksRight(page, 'managed-key-suspend', looks);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  assert.equal((await keyOf('tokens')).state, 'active');
  await page.getByRole('button', { name: 'Suspend…' }).click();
  await dialog.getByRole('button', { name: 'Suspend the key' }).click();
  await page.getByRole('status').filter({ hasText: 'The key is suspended.' }).waitFor();
  assert.equal((await keyOf('tokens')).state, 'suspended');
  assert.equal(await mac(), 400);
  assert.equal(await page.getByRole('button', { name: 'Rotate…' }).count(), 0);
  await page.getByText('It does nothing until it is resumed.').waitFor();
  await page.getByRole('button', { name: 'Resume…' }).click();
  await page.getByRole('button', { name: 'Resume the key' }).click();
  await page.getByRole('status').filter({ hasText: 'The key is active again.' }).waitFor();
  assert.equal(await mac(), 200);

  await page.getByRole('button', { name: 'Delete…' }).click();
  await dialog.getByText('1 caller used it in the last 24 hours').waitFor();
  await dialog.getByLabel('It can be restored for').selectOption('7 days');
  await dialog.getByLabel('Type tokens to confirm').fill('token');
  await dialog.getByRole('button', { name: 'Delete the managed key' }).click();
  await dialog.getByText('Type tokens exactly as shown.').waitFor();
  await looksRight(page, 'managed-key-delete', looks);
  await dialog.getByLabel('Type tokens to confirm').fill('tokens');
  await dialog.getByRole('button', { name: 'Delete the managed key' }).click();
  await page.getByRole('button', { name: 'Restore it' }).waitFor();
  const gone = await keyOf('tokens');
  assert.equal(gone.state, 'pending-deletion');
  const days = (Date.parse(gone.restorableUntil) - Date.now()) / 86_400_000;
  assert.ok(days > 6.9 && days < 7.1, `${days}`);
  await goTo(page, '/console/managed-keys/tokens');
  await page.getByText('It does nothing, and will be destroyed. You can restore it until').waitFor();
  await looksRight(page, 'managed-key-pending', looks);
  await page.getByRole('button', { name: 'Restore it' }).click();
  await page.getByRole('status').filter({ hasText: 'The key is back' }).waitFor();
  assert.equal(await mac(), 200);

  await page.getByRole('button', { name: 'Mark as compromised…' }).click();
  await page.getByRole('dialog', { name: 'Mark Tokens as compromised?' }).waitFor();
  await page.getByRole('button', { name: 'Mark it as compromised' }).click();
  await page.getByRole('status').filter({ hasText: 'The key is marked as compromised.' }).waitFor();
  assert.equal((await keyOf('tokens')).state, 'compromised');
  for (const name of ['Suspend…', 'Resume…', 'Deactivate…', 'Mark as compromised…']) {
    assert.equal(await page.getByRole('button', { name }).count(), 0, name);
  }

  await goTo(page, '/console/activity?ring=tokens');
  const log = page.getByRole('region', { name: 'Activity, newest first' });
  for (const text of [
    /marked managed key tokens as compromised/i,
    /suspended managed key tokens/i,
    /activated managed key tokens/i,
    /API key webhooks made MACs with managed key tokens/i,
  ]) {
    await log.getByText(text).first().waitFor();
  }
  await looksRight(page, 'managed-key-activity', looks);
  assert.deepEqual(troubles, []);
});

test('a version is suspended alone; a key is exported to a public key and imported from the wrapping key', async () => {
  const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
  await call('POST', '/managed-keys', { name: 'Carried', type: 'aes256-gcm', exportable: true });
  await call('POST', '/managed-keys/carried/rotate', {});
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/managed-keys/carried');
  const dialog = page.getByRole('dialog');
  await page.getByRole('button', { name: 'Change the state of version 1' }).click();
  await dialog.getByText('Nobody has used version 1.').waitFor();
  await dialog.getByText('It does nothing until you resume it.').waitFor();
  await looksRight(page, 'managed-key-version', looks);
  await dialog.getByRole('button', { name: 'Change the version' }).click();
  await page.getByRole('status').filter({ hasText: 'Version 1 is suspended.' }).waitFor();
  const states = (await keyOf('carried')).versions.map(({ state }: { state: string }) => state);
  assert.deepEqual(states, ['active', 'suspended']);

  await page.getByRole('button', { name: 'Export…' }).click();
  await dialog.getByLabel('Version').fill('3');
  await dialog.getByLabel('Public key to wrap it to').fill('no key');
  await dialog.getByRole('button', { name: 'Export the key' }).click();
  await dialog.getByText('Enter a whole number from 1 to 2.').waitFor();
  await dialog.getByLabel('Version').fill('2');
  await dialog.getByRole('button', { name: 'Export the key' }).click();
  await dialog.locator('[aria-invalid="true"], [role=alert]:not(:empty)').first().waitFor();
  const publicKey = pair.publicKey.export({ type: 'spki', format: 'pem' }).toString();
  await dialog.getByLabel('Public key to wrap it to').fill(publicKey);
  await looksRight(page, 'managed-key-export', looks);
  await dialog.getByRole('button', { name: 'Export the key' }).click();
  await page.getByRole('dialog', { name: 'Version 2 of Carried' }).waitFor();
  const wrapped = await dialog.getByLabel('Wrapped key, base64', { exact: true }).inputValue();
  const oaep = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' };
  const bytes = privateDecrypt({ key: pair.privateKey, ...oaep }, Buffer.from(wrapped, 'base64'));
  assert.equal(bytes.length, 32);
  await looksRight(page, 'managed-key-exported', looks);
  await dialog.getByRole('button', { name: 'Close' }).click();

  await page.getByRole('button', { name: 'Import a version…' }).click();
  const wrappingKey = await dialog.getByText('BEGIN PUBLIC KEY').textContent();
  await dialog.getByLabel('Wrapped key').fill('AAAA');
  await dialog.getByRole('button', { name: 'Import the key' }).click();
  await dialog.locator('[aria-invalid="true"], [role=alert]:not(:empty)').first().waitFor();
  await looksRight(page, 'managed-key-import', looks);
  const again = publicEncrypt({ key: wrappingKey ?? '', ...oaep }, randomBytes(32)).toString('base64');
  await dialog.getByLabel('Wrapped key').fill(again.replace(/.{64}/g, '$&\n'));
  await dialog.getByRole('button', { name: 'Import the key' }).click();
  await page.getByRole('status').filter({ hasText: 'It has the new version 3.' }).waitFor();
  const { versions } = await keyOf('carried');
  assert.deepEqual(
    versions.map(({ origin }: { origin: string }) => origin),
    ['imported', 'generated', 'generated'],
  );
  assert.deepEqual(troubles, []);
});

test('the rotation of a key that signs talks of signing, and its public keys are shown whole', async () => {
  await call('POST', '/managed-keys', { name: 'Seal-of-releases', type: 'rsa-3072', uses: ['sign', 'verify'] });
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/managed-keys/seal-of-releases');
  await page.getByText(/-----END PUBLIC KEY-----/).waitFor();
  await page.getByRole('button', { name: 'Rotate…' }).click();
  await page.getByText('which signs from now on. What was signed before can still be verified.').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('can leave the service, and this one was not').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Export…' }).count(), 0);
  await looksRight(page, 'managed-key-signs', looks);
  await goTo(page, '/console/managed-keys?is=pre-active');
  await page.getByRole('button', { name: 'Not active yet', pressed: true }).waitFor();
  assert.deepEqual(troubles, []);
});

test('an alias of another key moves only once that is confirmed', async () => {
  await call('POST', '/managed-keys', { name: 'Holder', aliases: ['apps/un'] });
  await call('POST', '/managed-keys', { name: 'Hook' });
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/managed-keys/hook');
  await page.getByLabel('New alias').fill('Apps/Un');
  await page.getByRole('button', { name: 'Add the alias' }).click();
  const dialog = page.getByRole('dialog', { name: 'Move the alias apps/un?' });
  await dialog.getByText('apps/un is an alias of Holder. Programs that use it get Hook instead').waitFor();
  await looksRight(page, 'managed-key-alias', looks);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  assert.deepEqual((await keyOf('holder')).aliases, ['apps/un']);
  await page.getByRole('button', { name: 'Add the alias' }).click();
  await dialog.getByRole('button', { name: 'Move the alias' }).click();
  await page.getByRole('status').filter({ hasText: 'It is also called apps/un now.' }).waitFor();
  assert.deepEqual([(await keyOf('holder')).aliases, (await keyOf('hook')).aliases], [[], ['apps/un']]);
  assert.deepEqual(troubles, []);
});

test('several keys are deleted: the dialog says who uses them, and names those that cannot be deleted', async () => {
  await call('POST', '/managed-keys', { name: 'Bulk-kept', tags: { team: 'bulk' } });
  for (const name of ['Bulk-one', 'Bulk-two']) {
    await call('POST', '/managed-keys', { name, deletionAllowed: true, tags: { team: 'bulk' } });
  }
  assert.equal((await call('POST', '/managed-keys/bulk-one/encrypt', { items: [{ plaintext: 'aGk=' }] })).status, 200);
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/managed-keys');
  await page.getByLabel('Search by name, id or tag').fill('team=bulk');
  await page.getByText(/^3 of \d+ entries\.$/).waitFor();
  await page.getByRole('button', { name: 'Suspended' }).click();
  await page.getByText('Nothing here matches “team=bulk” with these filters.').waitFor();
  await page.getByRole('button', { name: 'Suspended' }).click();
  await page.getByLabel('Select Bulk-kept').check();
  await page.getByText('1 managed key selected').waitFor();
  await page.getByRole('button', { name: 'Delete…' }).click();
  const hindered = page.getByRole('dialog', { name: 'Delete 1 managed key?' });
  await hindered.getByText('Bulk-kept: Its deletion is not allowed.').waitFor();
  assert.equal(await hindered.getByRole('button', { name: 'Delete', exact: true }).count(), 0);
  await hindered.getByRole('button', { name: 'Close' }).click();
  await page.getByLabel('Select all that are shown').check();
  await page.getByRole('button', { name: 'Delete…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Delete 2 managed keys?' });
  await dialog.getByText('1 managed key left out:').waitFor();
  await dialog.getByText('Bulk-kept: Its deletion is not allowed.').waitFor();
  await dialog.getByText('Bulk-one: 1 caller').waitFor();
  assert.equal(await dialog.getByText('Bulk-two: ').count(), 0, 'nobody uses it');
  await looksRight(page, 'managed-keys-delete', looks);
  await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('Deleted 2 managed keys.').waitFor();
  const states = await Promise.all(
    ['bulk-kept', 'bulk-one', 'bulk-two'].map(async (name) => (await keyOf(name)).state),
  );
  assert.deepEqual(states, ['active', 'pending-deletion', 'pending-deletion']);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByText('Undone.').waitFor();
  assert.equal((await keyOf('bulk-one')).state, 'active');
  assert.deepEqual(troubles, []);
});

test('what somebody may not do to a managed key is told, and not asked for', async () => {
  await appliance.addUser('bob', password, { flags: { 'key.list': true, 'key.*.read': true } });
  await call('POST', '/managed-keys', { name: 'Shown', type: 'ed25519' });
  const { page, troubles } = await visitAs(appliance, 'bob', '/console/managed-keys/shown');
  await page.getByText('Nobody has used it.').waitFor();
  for (const name of ['Suspend…', 'Deactivate…', 'Rotate…', 'Change settings', 'Add the alias']) {
    assert.equal(await page.getByRole('button', { name }).getAttribute('aria-disabled'), 'true', name);
  }
  await page.getByText(/BEGIN PUBLIC KEY/).waitFor();
  assert.deepEqual(troubles, []);
});
