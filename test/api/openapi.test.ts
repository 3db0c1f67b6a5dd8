// The API description by itself: the linter accepts it, it is complete, and its examples match their schemas.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { ownKmipFlags } from '../../src/core/kmip-objects.ts';
import { describedEndpoints } from '../../src/description/described-endpoints.ts';
import { guide } from '../../src/description/guide.ts';
import { openApiDocument } from '../../src/description/openapi-document.ts';
import { flagTable } from '../../src/model/flags.ts';
import { version } from '../../src/version.ts';
import { judgeOf, operationsOf } from '../support/description.ts';

const document = openApiDocument(version);
const judge = judgeOf(document);
const operations = operationsOf(document);

async function lint(source: string): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended-strict'] });
  const problems = await lintFromString({ source, absoluteRef: '/openapi.json', config });
  return problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} at ${location[0]?.pointer}`);
}

test('the strict linter finds nothing', async () => {
  assert.deepEqual(await lint(JSON.stringify(document)), []);
});

test('the linter would find something', async () => {
  const { license: _, ...info } = document.info;
  assert.notDeepEqual(await lint(JSON.stringify({ ...document, info })), []);
});

test('it is OpenAPI 3.1 of version 0.1.0, for whatever address it comes from', () => {
  assert.equal(document.openapi, '3.1.0');
  assert.equal(document.info.version, '0.1.0');
  assert.deepEqual(
    document.servers.map(({ url }) => url),
    ['/'],
  );
});

test('every declared endpoint is described, and nothing else', () => {
  assert.deepEqual(
    operations.map(({ operation }) => operation.operationId).sort(),
    describedEndpoints.map(({ endpoint }) => endpoint.id).sort(),
  );
});

test('every flag is told of: what it grants, and which endpoints take it', () => {
  assert.deepEqual(document['x-permission-flags'], flagTable);
  const used = new Set<string | undefined>([
    ...operations.map(({ operation }) => operation['x-required-flag']),
    ...Object.values(ownKmipFlags),
    // Looked at beside what an endpoint needs.
    'approval.read',
    'approval.give',
  ]);
  for (const { flag } of flagTable) {
    assert.ok(used.has(flag) || flag === '*', flag);
    assert.ok(document.info.description.includes(`\`${flag}\``), flag);
  }
  for (const { operation } of operations) {
    const flag = operation['x-required-flag'];
    if (flag === undefined) continue;
    assert.ok(operation.description.includes(`\`${flag}\``), operation.operationId);
    assert.deepEqual(operation.security, [{ bearer: [] }], operation.operationId);
  }
});

test('every operation has a summary, a description, a tag that is described, and described parameters', () => {
  const tags = new Set(document.tags.map(({ name }) => name));
  for (const { operation } of operations) {
    const { operationId: id, summary, description, parameters = [] } = operation;
    assert.ok(summary.length > 5 && description.length > 20, id);
    assert.ok(
      operation.tags.every((tag) => tags.has(tag)),
      id,
    );
    for (const each of parameters) {
      assert.ok(each.description !== '', `${id} ${each.name}`);
      // An example cursor would be refused.
      assert.equal(each.example === undefined, each.name === 'cursor', `${id} ${each.name}`);
    }
  }
});

test('every example of an answer and a request fits its schema', () => {
  let count = 0;
  for (const { path, method, operation } of operations) {
    const place = ['paths', path, method.toLowerCase()];
    for (const [status, response] of Object.entries(operation.responses)) {
      if ('$ref' in response) continue;
      for (const [type, { example, examples = {} }] of Object.entries(response.content ?? {})) {
        const values = example === undefined ? Object.values(examples).map(({ value }) => value) : [example];
        for (const value of values) {
          count++;
          assert.deepEqual(
            judge.at([...place, 'responses', status, 'content', type, 'schema'], value),
            [],
            `${operation.operationId} ${status}`,
          );
        }
      }
    }
    for (const [type, { example }] of Object.entries(operation.requestBody?.content ?? {})) {
      assert.deepEqual(
        judge.at([...place, 'requestBody', 'content', type, 'schema'], example),
        [],
        operation.operationId,
      );
    }
  }
  assert.ok(count > 200, `${count}`);
});

test('an answer without a required field, or with one more, is not as described', () => {
  let count = 0;
  for (const { operation } of operations) {
    const { operationId: id, responses } = operation;
    const ok = responses['200'];
    const example = ok && !('$ref' in ok) ? ok.content?.['application/json']?.example : undefined;
    if (typeof example !== 'object' || example === null || id === 'getOpenApi') continue;
    const headers = new Headers({ 'content-type': 'application/json' });
    const given = (body: unknown) => judge.answer(id, { status: 200, headers, body });
    assert.deepEqual(given(example), [], id);
    assert.notDeepEqual(given({ ...example, surprise: 1 }), [], id);
    const optional = [
      'warning',
      'privateKey',
      'plaintext',
      'wrapped',
      'signature',
      'mac',
      'asset',
      'threshold',
      'progress',
      'appliance',
      'epoch',
      'label',
      'lastVerifiedBackup',
      'shipping',
      'disk',
      'reporter',
      'brokenGlass',
      'nextCursor',
      'dialect',
      'reason',
      'request',
      'passkeyOptions',
      'address',
      'from',
      'activity',
      'recoveryCodes',
      'share',
      'mlDsaPublicKey',
      'mlDsaSignature',
      'value',
    ];
    const byFlags = (name: string): boolean => id === 'getNames' || (id === 'getOverview' && name !== 'readiness');
    const along: Readonly<Record<string, readonly string[]>> = {
      listSessions: ['secondFactors'],
      getKeyring: ['config', 'keys', 'apikeys'],
      getManagedKey: ['dependents'],
      getAccount: ['apikeys'],
      getUser: ['apikeys'],
      getApiKey: ['proofs'],
    };
    const isAsked = (name: string): boolean => along[id]?.includes(name) === true;
    const isWork = ['signWithKey', 'verifyWithKey', 'macWithKey'].includes(id);
    const ofKind = ['id', 'kind', 'name', 'active', 'createdAt', 'createdBy', 'lastUsedAt'];
    const isOfKind = (name: string): boolean => ['addProof', 'updateProof'].includes(id) && !ofKind.includes(name);
    const mayLack = (name: string): boolean =>
      isWork ||
      isOfKind(name) ||
      (/orkload/.test(id) && name === 'certificate') ||
      optional.includes(name) ||
      byFlags(name) ||
      isAsked(name) ||
      (id === 'encrypt' && name === 'publicKey');
    for (const field of Object.keys(example).filter((name) => !mayLack(name))) {
      count++;
      const rest = Object.fromEntries(Object.entries(example).filter(([name]) => name !== field));
      assert.notDeepEqual(given(rest), [], `${id} without ${field}`);
    }
    assert.notDeepEqual(judge.answer(id, { status: 299, headers, body: example }), []);
  }
  assert.ok(count > 120, `${count}`);
});

test('the guide is written out, section by section, with an anchor each', () => {
  assert.equal(new Set(guide.map(({ id }) => id)).size, guide.length);
  for (const { title } of guide) assert.ok(document.info.description.includes(`## ${title}\n`), title);
  // A rule of each kind, recognised by a word that only it contains.
  const rules = [
    '`*`',
    '10,000',
    '1 MiB',
    '32 levels',
    'CRC-32',
    '12 hours',
    '7 days',
    '15 minutes',
    'argon2id',
    '256 characters',
  ];
  const more = [
    'nobody',
    'low order',
    'RFC 9180',
    'kms/ks/key/v1',
    'kms/asym/key/v1',
    '4,294,967,296',
    '30 days',
    '1,024',
    'RFC 8785',
  ];
  for (const words of [...rules, ...more, 'hash chain', 'kms tenant limits', '/readyz', 'Kms-State', 'Retry-After']) {
    assert.ok(document.info.description.includes(words), words);
  }
});
