// Proofs of an API key in the console: added for a platform, tested with a token, switched off and on, removed; secrets
// shown once; and the records of them, read as sentences.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { TestCertificate } from '../support/client-certificates.ts';
import { TokenIssuer } from '../support/token-issuer.ts';
import { servedAppliance } from './appliance.ts';
import { goTo, password, visitAs } from './log-in.ts';
import { looksRight } from './looks-right.ts';

const appliance = await servedAppliance();
const { call } = appliance;
await appliance.addUser('ada', password, { flags: { '*': true } });
await appliance.addUser('bob', password, { flags: { 'apikey.read': true } });
const accountId: string = (await call('GET', '/auth/accounts')).body.data[0].id;
const issuer = await TokenIssuer.make(Date.now);

const seen = [
  { scheme: 'light', width: 1280 },
  { scheme: 'dark', width: 820 },
  { scheme: 'light', width: 390 },
] as const;

async function keyWith(name: string, more: object = {}): Promise<{ keyid: string; key: string }> {
  return (await call('POST', '/auth/apikey', { accountId, name, flags: { 'keyring.list': true }, ...more })).body;
}

async function proofsOf(keyid: string) {
  return (await call('GET', `/auth/apikeys/${keyid}/proofs`)).body.proofs;
}

test('a key is made without a secret, and proved by the tokens of a platform', async () => {
  const { page, troubles } = await visitAs(appliance, 'ada', '/console/new/apikey');
  await page.getByLabel('Name (optional)').fill('ci');
  await page.getByLabel('Without a secret').check();
  await looksRight(page, 'new-apikey-no-secret', seen);
  await page.getByRole('button', { name: 'Create the key' }).click();
  await page.getByRole('heading', { name: 'ci', level: 1 }).waitFor();
  await page.getByText('None yet, so nobody can use this key.').waitFor();
  const keyid = new URL(page.url()).pathname.split('/').at(-1) ?? '';
  assert.deepEqual(await proofsOf(keyid), []);

  await page.getByRole('button', { name: 'Add a proof' }).click();
  const dialog = page.getByRole('dialog', { name: 'Add a proof' });
  await dialog.getByLabel('Name (optional)').fill('CI of payroll');
  await dialog.getByLabel('Repository').fill('payroll');
  await dialog.getByRole('button', { name: 'Add the proof' }).click();
  await dialog.getByText('Enter it as owner/name.').waitFor();
  await dialog.getByLabel('Repository').fill('acme/payroll');
  await dialog.getByLabel('Branch').fill('main');
  await looksRight(page, 'proof-add', seen);
  await dialog.getByRole('button', { name: 'Add the proof' }).click();
  await dialog.waitFor({ state: 'detached' });
  const table = page.getByRole('table', { name: 'Proofs of this API key' });
  const row = table.getByRole('row').filter({ hasText: 'CI of payroll' });
  await row.getByText('repository=acme/payroll, ref=refs/heads/main').waitFor();
  await row.getByText('never').waitFor();
  const [added] = await proofsOf(keyid);
  assert.deepEqual(
    [added.issuer, added.audience, added.claims],
    [
      'https://token.actions.githubusercontent.com',
      [appliance.url],
      { repository: ['acme/payroll'], ref: ['refs/heads/main'] },
    ],
  );

  await row.getByRole('button', { name: 'Disable CI of payroll' }).click();
  const question = page.getByRole('dialog', { name: 'Disable CI of payroll?' });
  await question.getByText('It was never used.').waitFor();
  await question.getByText('Without it, nobody can use this key.').waitFor();
  await question.getByRole('button', { name: 'Disable it' }).click();
  await row.getByText('disabled', { exact: true }).waitFor();
  assert.equal((await proofsOf(keyid))[0].active, false);
  await row.getByRole('button', { name: 'Enable CI of payroll' }).click();
  await row.getByText('active', { exact: true }).waitFor();
  assert.equal((await proofsOf(keyid))[0].active, true);
  assert.deepEqual(troubles, []);
});

test('the fields of each platform make a proof that the appliance takes, or say what is wrong', async () => {
  const { keyid } = await keyWith('platforms');
  const { page, troubles } = await visitAs(appliance, 'ada', `/console/apikeys/${keyid}`);
  const jwks = JSON.stringify(issuer.jwks);
  const platforms = [
    ['GitLab CI', { Project: 'acme/payroll' }],
    [
      'Kubernetes',
      { 'Issuer of the cluster': 'https://cluster.example.org', Namespace: 'prod', 'Service account': 'pay' },
    ],
    ['SPIFFE', { 'Trust domain': 'example.org', 'SPIFFE ID': '/sa/pay', 'Bundle of the trust domain': jwks }],
    ['Another issuer', { Issuer: issuer.issuer, Subject: 'build', 'Public keys': jwks }],
  ] as const;
  const dialog = page.getByRole('dialog', { name: 'Add a proof' });
  for (const [platform, fields] of platforms) {
    await page.getByRole('button', { name: 'Add a proof' }).click();
    await dialog.getByLabel('Who signs the tokens?').selectOption(platform);
    if (platform === 'Another issuer') {
      await dialog.getByLabel('Issuer', { exact: true }).fill('http://example.org');
      await dialog.getByRole('button', { name: 'Add the proof' }).click();
      await dialog.getByText('Expected https://host').waitFor();
    }
    for (const [label, text] of Object.entries(fields)) {
      await dialog.getByLabel(new RegExp(`^${label}(?: \\(optional\\))?$`)).fill(text);
    }
    await looksRight(page, `proof-add-${platform.split(' ')[0]?.toLowerCase()}`, [{ scheme: 'light', width: 390 }]);
    await dialog.getByRole('button', { name: 'Add the proof' }).click();
    await dialog.waitFor({ state: 'detached' });
  }
  await page.getByRole('row').filter({ hasText: 'for http' }).nth(3).waitFor();
  const issuers = (await proofsOf(keyid)).map((each: { issuer?: string }) => each.issuer);
  assert.deepEqual(issuers, [
    undefined,
    'https://gitlab.com',
    'https://cluster.example.org',
    'spiffe://example.org',
    issuer.issuer,
  ]);
  await looksRight(page, 'apikey-proofs', seen);
  assert.deepEqual(troubles, []);
});

test('the secrets of a proof are shown once, and go with it', async () => {
  const { keyid } = await keyWith('signer', { secret: false });
  const { page, troubles } = await visitAs(appliance, 'ada', `/console/apikeys/${keyid}`);
  const add = async (kind: string): Promise<void> => {
    await page.getByRole('button', { name: 'Add a proof' }).click();
    await page.getByRole('dialog').getByLabel(kind, { exact: true }).check();
    await page.getByRole('button', { name: 'Add the proof' }).click();
  };
  await add('AWS access key');
  const told = page.getByRole('dialog', { name: 'The proof has been added' });
  const value = await told.getByLabel('Secret access key', { exact: true }).inputValue();
  assert.match(value, /^[A-Za-z0-9+/]{40}$/);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await told.getByRole('button', { name: 'Copy: Secret access key' }).click();
  await told.getByText('Copied.').waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), value);
  await page.keyboard.press('Escape');
  await looksRight(page, 'proof-secret', seen);
  await told.getByRole('button', { name: 'I have it' }).click();
  const [{ accessKeyId }] = await proofsOf(keyid);
  await page.getByRole('row').filter({ hasText: accessKeyId }).waitFor();
  assert.ok(!(await page.content()).includes(value));

  await add('Secret');
  const secret = await told.getByLabel('Secret of the API key', { exact: true }).inputValue();
  await told.getByRole('button', { name: 'I have it' }).click();
  assert.equal((await call('GET', '/ks/keyrings', undefined, secret)).status, 200);
  await page.getByRole('button', { name: 'Add a proof' }).click();
  await page.getByRole('dialog').getByLabel('AWS access key', { exact: true }).waitFor();
  assert.equal(await page.getByRole('dialog').getByLabel('Secret', { exact: true }).count(), 0, 'it has one');
  await page.keyboard.press('Escape');

  await page.reload();
  await page.getByRole('button', { name: 'Remove Secret' }).click();
  const question = page.getByRole('dialog', { name: 'Remove the secret?' });
  await question.getByText(/The key was last used .*by this or another proof/).waitFor();
  await looksRight(page, 'proof-remove', seen);
  await question.getByRole('button', { name: 'Remove it' }).click();
  await page.getByText('whoever has the secret').waitFor({ state: 'detached' });
  assert.equal((await call('GET', '/ks/keyrings', undefined, secret)).status, 401);
  assert.deepEqual(troubles, []);
});

test('client certificates prove a key: issued here, one that there is, or those of an authority', async () => {
  const { keyid } = await keyWith('signed', { secret: false });
  const { page, troubles } = await visitAs(appliance, 'ada', `/console/apikeys/${keyid}`);
  const dialog = page.getByRole('dialog', { name: 'Add a proof' });
  const begin = async (source?: string): Promise<void> => {
    await page.getByRole('button', { name: 'Add a proof' }).click();
    await dialog.getByLabel('Client certificate', { exact: true }).check();
    if (source !== undefined) await dialog.getByLabel('Where does the certificate come from?').selectOption(source);
  };
  const add = dialog.getByRole('button', { name: 'Add the proof' });
  await begin();
  await dialog.getByLabel('Days until it expires').fill('826');
  await add.click();
  await dialog.getByText('Enter 1 to 825 days.').waitFor();
  await dialog.getByLabel('Days until it expires').fill('30');
  await looksRight(page, 'proof-certificate', seen);
  await add.click();
  const told = page.getByRole('dialog', { name: 'The proof has been added' });
  const shown = async (label: string) => told.getByLabel(label, { exact: true }).inputValue();
  assert.match(await shown('Private key'), /^-----BEGIN PRIVATE KEY-----/);
  const [issued, authority] = [await shown('Certificate'), await shown('Certificate of the authority')];
  await looksRight(page, 'proof-certificate-issued', seen);
  await told.getByRole('button', { name: 'I have it' }).click();
  assert.ok(new X509Certificate(issued).verify(new X509Certificate(authority).publicKey));

  await begin('The program has one already');
  await dialog.getByLabel('Certificate', { exact: true }).fill('-----BEGIN');
  await add.click();
  await dialog.locator('[aria-invalid=true]').waitFor();
  const own = await TestCertificate.alone(Date.now());
  await dialog.getByLabel('Certificate', { exact: true }).fill(own.pem);
  await add.click();
  await dialog.waitFor({ state: 'detached' });

  await begin('A certificate authority of ours issues them');
  const ca = await TestCertificate.authority(Date.now());
  await dialog.getByLabel('Certificate of the authority').fill(ca.pem);
  await dialog.getByLabel('Name in the certificates').fill('dns:pay.example.org');
  await looksRight(page, 'proof-certificate-authority', seen);
  await add.click();
  await dialog.waitFor({ state: 'detached' });
  await page.getByRole('row').filter({ hasText: 'dns:pay.example.org, of CN=ca' }).waitFor();
  const proofs = await proofsOf(keyid);
  assert.deepEqual(
    proofs.map(({ kind, san }: Record<string, unknown>) => [kind, san]),
    [
      ['certificate', undefined],
      ['certificate', undefined],
      ['certificate', 'dns:pay.example.org'],
    ],
  );
  await looksRight(page, 'apikey-certificates', seen);
  assert.deepEqual(troubles, []);
});

test('a token is tested check by check, and what programs did reads as sentences', async () => {
  const { keyid } = await keyWith('build', { secret: false });
  const trust = { kind: 'jwt', issuer: issuer.issuer, audience: 'kms', jwks: issuer.jwks };
  const subject = 'repo:acme/payroll:ref:refs/heads/main';
  await call('POST', `/auth/apikeys/${keyid}/proofs`, { ...trust, name: 'CI', subject });
  const path = `/auth/apikeys/${keyid}/proofs`;
  const other = (await call('POST', path, { ...trust, name: 'Old CI', subject: 'build' })).body;
  await call('PATCH', `${path}/${other.id}`, { active: false });
  await call('DELETE', `${path}/${other.id}`);
  await call('PUT', '/auth/apikeyid', { op: 'merge', apikeyid: keyid, flags: { 'keyring.r.read': true } });
  const token = await issuer.token({ sub: subject });
  const { body: session } = await call('POST', '/auth/workload/login', { token, role: keyid }, '');
  assert.equal((await call('GET', '/ks/keyrings', undefined, session.accessToken)).status, 200);
  const strange = await issuer.token({ sub: subject, aud: 'vault' });
  assert.equal((await call('POST', '/auth/workload/login', { token: strange, role: keyid }, '')).status, 400);
  const another = await issuer.token({ sub: 'build2' });
  assert.equal((await call('POST', '/auth/workload/login', { token: another, role: keyid }, '')).status, 400);

  const { page, troubles } = await visitAs(appliance, 'ada', `/console/apikeys/${keyid}`);
  await page.getByRole('button', { name: 'Test a token' }).click();
  const dialog = page.getByRole('dialog', { name: 'Test a token' });
  await dialog.getByLabel('Token').fill(strange);
  await dialog.getByRole('button', { name: 'Test it' }).click();
  await dialog.getByText('No: no proof of this API key accepts the token.').waitFor();
  await dialog.getByText('audience: it was issued for another audience').waitFor();
  await looksRight(page, 'proof-test', seen);
  await dialog.getByLabel('Token').fill(token);
  await dialog.getByRole('button', { name: 'Test it' }).click();
  await dialog.getByText('Yes: the token would log in as this API key.').waitFor();
  assert.equal(await dialog.getByText('failed').count(), 0);
  await dialog.getByRole('button', { name: 'Close' }).click();

  await goTo(page, `/console/activity/apikey/${keyid}`);
  const entries = page.locator('[data-timeline] ol > li');
  await entries.filter({ hasText: 'created API key' }).waitFor();
  const texts = (await entries.allInnerTexts()).map((text) => text.replace(/\s+/g, ' '));
  for (const sentence of [
    `Program ${subject} logged in as API key build`,
    'A program tried to log in as API key build denied',
    'Program build2 tried to log in as API key build denied',
    'API key build listed keyrings',
    'added a proof (jwt) to API key build from',
    'disabled a proof (jwt) of API key build from',
    'removed a proof (jwt) from API key build from',
    'changed API key build from',
  ]) {
    assert.ok(
      texts.some((text) => text.includes(sentence)),
      `${sentence}: ${texts.join('\n')}`,
    );
  }
  await entries.filter({ hasText: 'the login was refused by the check of its audience' }).waitFor();
  const listed = entries.filter({ hasText: `proved by ${subject}` });
  assert.equal(await listed.count(), 1);
  await looksRight(page, 'activity-proofs', seen);
  await listed.getByRole('link').first().click();
  await page.getByText('Proved by').waitFor();
  await page.getByText(subject, { exact: true }).waitFor();
  await looksRight(page, 'activity-record-proof', seen);
  assert.deepEqual(troubles, []);
});

test('a kind of proof that the console does not know is shown by its name, and can be removed', async () => {
  const { keyid } = await keyWith('future');
  const { page, troubles } = await visitAs(appliance, 'ada');
  await page.route(`**/auth/apikey/${keyid}?*`, async (route) => {
    const answer = await (await route.fetch()).json();
    const [secret] = answer.proofs;
    const proof = { ...secret, id: 'proof_future', kind: 'smoke-signal', name: 'Hill' };
    await route.fulfill({ json: { ...answer, proofs: [secret, proof] } });
  });
  await goTo(page, `/console/apikeys/${keyid}`);
  const row = page.getByRole('row').filter({ hasText: 'Hill' });
  await row.getByText('smoke-signal', { exact: true }).waitFor();
  await row.getByText('not known to this console').waitFor();
  await row.getByRole('button', { name: 'Remove Hill' }).waitFor();
  assert.deepEqual(troubles, []);
});

test('who may only read API keys sees the proofs, and why they cannot change them', async () => {
  const { keyid } = await keyWith('shown');
  const { page, troubles } = await visitAs(appliance, 'bob', `/console/apikeys/${keyid}`);
  for (const name of ['Add a proof', 'Remove Secret']) {
    const button = page.getByRole('button', { name });
    await button.waitFor();
    assert.equal(await button.getAttribute('title'), 'You would need the flag apikey.update.');
  }
  assert.equal(await page.getByRole('button', { name: 'Test a token' }).getAttribute('title'), null);
  assert.deepEqual(troubles, []);
});
