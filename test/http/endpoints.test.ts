// The endpoint declarations themselves: complete, without duplicates, and each with a flag that exists.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import type { Endpoint } from '../../src/api/endpoint.ts';
import { endpoints } from '../../src/api/endpoints.ts';
import { loginEndpoints } from '../../src/api/logins.ts';
import { sealEndpoints } from '../../src/api/system.ts';
import { userEndpoints } from '../../src/api/users.ts';
import { routes } from '../../src/http/route-table.ts';
import { flagName, isKnownFlag, knownFlags } from '../../src/model/flags.ts';

const declared: readonly Endpoint[] = [...new Set<Endpoint>([...endpoints, ...userEndpoints, ...loginEndpoints])];

test('every endpoint has a route and every route an endpoint', () => {
  assert.deepEqual(Object.keys(routes).sort(), endpoints.map(({ id }) => id).sort());
});

test('the 49 endpoints of the interface are declared, and 94 more', () => {
  assert.equal(declared.length, 143);
  assert.equal(new Set(declared.map(({ id }) => id)).size, 143);
  assert.equal(new Set(declared.map(({ method, path }) => `${method} ${path.replace(/\{\w+\}/g, '{}')}`)).size, 143);
});

test('path parameters, page parameters and bodies fit method and path', () => {
  for (const { id, path, method, params, query, body, paginated } of declared) {
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    assert.deepEqual(Object.keys(params?.shape ?? {}), names, id);
    const pages = ['cursor', 'limit'].every((name) => Object.hasOwn(query?.shape ?? {}, name));
    assert.equal(pages, paginated === true, id);
    const hasNone = method === 'GET' || (method === 'DELETE' && id !== 'deleteManagedKey');
    if (hasNone) assert.equal(body, undefined, id);
  }
});

test('every action is a flag of the table, and every flag of the table an action', () => {
  const used = new Set<string>();
  const all: readonly Endpoint[] = [...declared, sealEndpoints.seal];
  for (const { id, access } of all) {
    if (access.kind !== 'flag') continue;
    const flag = flagName(access.action);
    assert.ok(knownFlags.includes(flag), `${id}: ${flag}`);
    assert.equal(flag.includes('<ringname>'), access.ring !== undefined, id);
    used.add(flag);
  }
  // Flags of KMIP are for operations on one's own objects, which are those of managed keys.
  const ofKmip = ['create', 'read', 'get', 'use', 'change', 'state', 'destroy'].map((name) => `kmip.${name}`);
  // These are looked at beside what an endpoint needs.
  const ofApprovals = ['approval.read', 'approval.give'];
  const unused = knownFlags.filter((flag) => !used.has(flag));
  assert.deepEqual(unused, ['*', ...ofKmip, ...ofApprovals]);
  const names = ['*', 'keyring.*', 'keyring.*.*', 'keyring.a.b.read', 'keyring.a.*', 'keyring.*.read', 'asym.x.rotate'];
  const foreign = ['', 'x', 'x.y', 'keyring', 'keyring.a', 'keyring.a.fly', 'asym.x.encrypt', 'asset.x', 'user.*.read'];
  for (const name of names) assert.equal(isKnownFlag(name), true, name);
  for (const name of foreign) assert.equal(isKnownFlag(name), false, name);
});

test('every schema can be described as JSON Schema', () => {
  for (const { id, params, query, body, answer, errors } of declared) {
    const extra = Object.values(errors ?? {}).map(({ schema }) => schema);
    for (const schema of [params, query, body, answer, ...extra]) {
      if (!schema) continue;
      const described = z.toJSONSchema(schema, { io: schema === answer ? 'output' : 'input', unrepresentable: 'any' });
      assert.doesNotMatch(
        JSON.stringify(described),
        /"(?!properties")\w+":\{\}/,
        `${id} leaves a field without a type`,
      );
    }
  }
});
