// Requests that the console does not send, since the session's flags forbid them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endpoints } from '../../src/api/endpoints.ts';
import { clientPaths } from '../../src/api/paths.ts';
import { createClient } from '../../src/client/client.ts';
import { allowed, lookNeeds, lookRefusal } from '../../src/console/allowed.ts';
import type { Session } from '../../src/console/session.ts';
import { KmsError } from '../../src/errors.ts';
import { parseFlags } from '../../src/model/flags.ts';

function sessionWith(...flags: string[]): Session {
  const granted = Object.fromEntries(flags.map((flag) => [flag, true]));
  const names = { username: 'Ada', firstName: '', lastName: '', displayName: '', email: 'ada@example.org' };
  const rest = { id: 'user_1', keys: [], props: {}, state: 'active' as const, lastLoginAt: null };
  return { user: { ...names, ...rest, flags: granted }, flags: granted, may: parseFlags(granted) };
}

const withKey: Session = { user: undefined, flags: { '*': true }, may: parseFlags({ '*': true }) };

test('every look that takes a flag is known with it, and nothing else', () => {
  const expected = new Map<string, object>();
  for (const endpoint of endpoints) {
    const { id, method, access } = endpoint;
    const changes = 'changes' in endpoint ? endpoint.changes : method !== 'GET';
    // The console validates keys only on request.
    if (changes || access.kind !== 'flag' || !Object.hasOwn(clientPaths, id) || id === 'validateApiKey') continue;
    const ring = 'ring' in access ? access.ring : undefined;
    // Only the appliance can tell the ring of a hash or a header.
    if (ring?.from === 'hash' || ring?.from === 'header' || ring?.from === 'sealed-body') continue;
    expected.set(id, {
      action: access.action,
      ...(ring && 'param' in ring && { ring: ring.param }),
      ...('orSelf' in access && { self: access.orSelf }),
    });
  }
  assert.deepEqual(lookNeeds, Object.fromEntries(expected));
});

test('a look is refused as the appliance would refuse it', () => {
  const session = sessionWith('keyring.payroll.read', 'user.read', 'asym.*.read');
  const refusal = (id: string, input?: Record<string, unknown>) => lookRefusal(session, id, input)?.message;
  assert.equal(refusal('listUsers'), undefined);
  assert.equal(refusal('searchActivity', {}), 'the permission flag activity.read is missing');
  assert.equal(refusal('getKeyring', { ringname: 'PAYROLL' }), undefined);
  assert.equal(refusal('getKeyring', { ringname: 'mail' }), 'the permission flag keyring.mail.read is missing');
  assert.equal(refusal('getKeyring', { ringname: 'ring_1', id: true }), undefined);
  assert.equal(refusal('getAsymKey', { ringname: 'any' }), undefined);
  assert.equal(refusal('rotateKeyring', { ringname: 'mail' }), undefined, 'what is done on purpose is asked for');
  assert.equal(lookRefusal(sessionWith(), 'getUser', { username: 'ADA' }), undefined);
  assert.equal(lookRefusal(sessionWith(), 'getUser', { username: 'bob' })?.code, 'forbidden');
  assert.equal(lookRefusal(withKey, 'searchActivity'), undefined, 'the flags of an API key are not known');
});

test('what is refused here is not sent', async () => {
  const sent: string[] = [];
  const api = createClient({
    baseUrl: 'http://kms.test',
    async fetch(request) {
      sent.push(new URL(request.url).pathname);
      return Response.json({ data: [], pagination: { limit: 1, count: 0, hasMore: false } });
    },
  });
  const stream = async () => new ReadableStream<Uint8Array>();
  const names = { get: async () => ({}) };
  const client = { api, polls: api, names, stream, settled: async () => {}, active() {}, end: async () => undefined };
  const poor = allowed(client, sessionWith('keyring.list'));
  const forbidden = (error: unknown): boolean => error instanceof KmsError && error.code === 'forbidden';
  await assert.rejects(poor.api.getBackups(), forbidden);
  await assert.rejects(poor.api.searchActivity({}), forbidden);
  await assert.rejects(poor.api.listUsers(), forbidden);
  await poor.api.listKeyrings({ limit: 1 });
  assert.deepEqual(sent, ['/ks/keyrings']);
  const rich = allowed(client, sessionWith('system.metrics', 'activity.read'));
  // The pretended answer is none of backups.
  await assert.rejects(rich.api.getBackups());
  await rich.api.searchActivity({});
  assert.deepEqual(sent.slice(1), ['/system/backups', '/auth/search/activity']);
});
