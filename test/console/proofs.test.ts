// Proofs of API keys in the console's words: what each trusts, the trust that a form asks for, and records about them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Proof } from '../../src/api/proofs.ts';
import { proofDetailsOf, proofWordsOf } from '../../src/console/activity/proof-words.ts';
import type { ActivityRecord } from '../../src/console/activity/records.ts';
import { statusText } from '../../src/console/activity/words.ts';
import { checkText, kindText, proofTitle, trustText } from '../../src/console/apikeys/proof-words.ts';
import { type Platform, platforms, trustIn } from '../../src/console/apikeys/token-trust.ts';
import { FieldProblems } from '../../src/console/error-text.ts';
import type { FormValues } from '../../src/console/parts/form.tsx';
import { checkedTrust, tokenChecks } from '../../src/model/trust.ts';

const proof = (kind: string, more: Partial<Proof> = {}): Proof => ({
  id: 'proof_1',
  // Cast: a newer appliance may have kinds that this console does not know.
  kind: kind as Proof['kind'],
  name: '',
  active: true,
  createdAt: '2026-01-01T00:00:00.000Z',
  createdBy: null,
  lastUsedAt: null,
  ...more,
});

test('each kind is told in a line, and one that is not known by its own name', () => {
  assert.equal(trustText(proof('secret')), 'whoever has the secret');
  assert.equal(trustText(proof('aws', { accessKeyId: 'AKIA1' })), 'AKIA1');
  const issuer = 'https://token.actions.githubusercontent.com';
  const claims = { repository: ['acme/payroll'], ref: ['refs/heads/main', 'refs/heads/next'] };
  assert.equal(
    trustText(proof('jwt', { issuer, claims, audience: ['kms', 'kms2'] })),
    'repository=acme/payroll, ref=refs/heads/main|refs/heads/next from token.actions.githubusercontent.com for kms or kms2',
  );
  const spiffe = { issuer: 'spiffe://example.org', subject: 'spiffe://example.org/sa/ci', audience: ['kms'] };
  assert.equal(trustText(proof('jwt', spiffe)), 'spiffe://example.org/sa/ci for kms');
  assert.equal(trustText(proof('smoke-signal')), '');
  const certificate = { fingerprint: '8a1f'.repeat(16), notAfter: '2026-04-01T00:00:00.000Z' };
  const key = 'public key SHA-256 8a1f8a1f8a1f8a1f…';
  assert.equal(trustText(proof('certificate', certificate)), `${key}, certificate until 2026-04-01`);
  assert.equal(trustText(proof('certificate', { ...certificate, issued: true })), `${key}, until 2026-04-01`);
  const named = { ...certificate, san: 'dns:pay.example.org' };
  assert.equal(
    trustText(proof('certificate', named)),
    'dns:pay.example.org, of the authority SHA-256 8a1f8a1f8a1f8a1f…, until 2026-04-01',
  );
  assert.equal(
    trustText(proof('certificate', { ...named, authority: 'CN=Programs' })),
    'dns:pay.example.org, of CN=Programs, until 2026-04-01',
  );
  assert.equal(kindText('smoke-signal'), 'smoke-signal');
  assert.equal(proofTitle(proof('smoke-signal')), 'smoke-signal');
  assert.equal(proofTitle(proof('jwt', { name: 'CI' })), 'CI');
});

test('every check of a token has words', () => {
  for (const check of tokenChecks) assert.ok(check.length <= checkText(check).length, check);
  assert.equal(checkText('mood'), 'mood');
});

function filled(fields: Readonly<Record<string, string>>): FormValues {
  const exactly = (name: string): string => fields[name] ?? '';
  return { exactly, text: (name) => exactly(name).trim(), isOn: (name) => name in fields, firstAt: 0 };
}

const jwks = '{"keys": []}';
const trusts: Readonly<Record<Platform, readonly [typed: Readonly<Record<string, string>>, trust: object]>> = {
  github: [
    { repository: 'acme/payroll', branch: 'main', environment: 'prod' },
    {
      issuer: 'https://token.actions.githubusercontent.com',
      claims: { repository: 'acme/payroll', ref: 'refs/heads/main', environment: 'prod' },
    },
  ],
  gitlab: [
    { issuer: 'https://gitlab.com', project: 'acme/tools/payroll', branch: 'main' },
    { issuer: 'https://gitlab.com', claims: { project_path: 'acme/tools/payroll', ref: 'main', ref_type: 'branch' } },
  ],
  kubernetes: [
    { issuer: 'https://cluster.example.org', namespace: 'prod', serviceAccount: 'payroll', jwks, ca: 'PEM\n' },
    {
      issuer: 'https://cluster.example.org',
      subject: 'system:serviceaccount:prod:payroll',
      jwks: { keys: [] },
      ca: 'PEM\n',
    },
  ],
  spiffe: [
    { issuer: 'example.org', subject: '/sa/payroll', jwksUrl: 'https://example.org/bundle' },
    {
      issuer: 'spiffe://example.org',
      subject: 'spiffe://example.org/sa/payroll',
      jwksUrl: 'https://example.org/bundle',
    },
  ],
  other: [
    { issuer: 'https://ci.example.org', subject: 'build', claims: '{"team": ["pay"]}' },
    { issuer: 'https://ci.example.org', subject: 'build', claims: { team: ['pay'] } },
  ],
};

test('what is filled in for a platform becomes a trust that the appliance takes', () => {
  for (const [platform] of platforms) {
    const [typed, expected] = trusts[platform];
    const trust = trustIn(platform, filled({ ...typed, audience: 'kms, kms2', longest: '10', once: 'on' }));
    const { issuer = '', audience = [], ...rest } = trust;
    assert.deepEqual(trust, { ...expected, audience: ['kms', 'kms2'], once: true, longest: 600 }, platform);
    assert.ok(checkedTrust({ issuer, audience, ...rest }, false), platform);
  }
  const least = trustIn('github', filled({ repository: 'acme/payroll', audience: 'kms' }));
  assert.deepEqual(least, { audience: ['kms'], issuer: least.issuer, claims: { repository: 'acme/payroll' } });
  const whole = filled({ issuer: 'spiffe://example.org', subject: 'spiffe://example.org/sa/payroll', audience: 'kms' });
  assert.equal(trustIn('spiffe', whole).subject, 'spiffe://example.org/sa/payroll');
});

test('a repository or project that would let in others is refused in its field', () => {
  for (const repository of ['acme', 'acme/*', '*/payroll', 'acme/pay roll', 'a/b/c', '']) {
    assert.throws(() => trustIn('github', filled({ repository, audience: 'kms' })), FieldProblems, repository);
  }
  for (const project of ['acme', 'acme/**', '/payroll', '']) {
    const typed = { issuer: 'https://gitlab.com', project, audience: 'kms' };
    assert.throws(() => trustIn('gitlab', filled(typed)), FieldProblems, project);
  }
  for (const longest of ['0', '1.5', '1441', 'long']) {
    const typed = { repository: 'acme/payroll', audience: 'kms', longest };
    assert.throws(() => trustIn('github', filled(typed)), FieldProblems, longest);
  }
});

function record(more: Partial<ActivityRecord>): ActivityRecord {
  const rest = { createdAt: 1, action: 'keyring.encrypt', ringname: 'r', validAction: true, status: 200 };
  return { id: 'act_1', keyid: 'apik_a', props: {}, ...rest, ...more };
}

test('records about proofs say what was done, and who acted by one', () => {
  const changed = (proofChange: string, kind: string) => {
    const object = { type: 'apikey', id: 'apik_b', name: 'ci' };
    const props = { object, objects: [{ type: 'proof', id: 'proof_1', name: kind }], proofChange };
    return proofWordsOf(record({ action: 'apikey.update', ringname: '', props }))?.past;
  };
  assert.equal(changed('add', 'jwt'), 'added a proof (jwt) to');
  assert.equal(changed('disable', 'aws'), 'disabled a proof (aws) of');
  assert.equal(changed('enable', 'aws'), 'enabled a proof (aws) of');
  assert.equal(changed('remove', 'secret'), 'removed a secret from');
  assert.equal(proofWordsOf(record({})), undefined);

  const by = { proof: 'proof_01arz3ndektsv4rrffq69g5fav', subject: 'repo:acme/payroll' };
  assert.deepEqual(proofDetailsOf(record({ props: by })), ['proved by repo:acme/payroll']);
  assert.match(proofDetailsOf(record({ props: { proof: by.proof } }))[0] ?? '', /^proved by the proof …q69g5fav$/);
  assert.deepEqual(proofDetailsOf(record({ props: by, reporter: 'apik_c' })), [], 'the words of another program');
  assert.deepEqual(proofDetailsOf(record({ action: 'session.create', props: by })), []);

  const refused = { action: 'session.create', validAction: false, status: 400, props: { refusedBy: 'audience' } };
  assert.deepEqual(proofDetailsOf(record(refused)), ['the login was refused by the check of its audience']);
  assert.equal(statusText(record(refused)), 'the login was refused by the check of its audience');
  assert.equal(statusText(record({ ...refused, props: {} })), 'wrong secret');
});
