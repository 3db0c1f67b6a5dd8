// docs/aws-kms.md says of every operation what it does, and which flag it takes: the one of the endpoint behind it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Endpoint } from '../../src/api/endpoint.ts';
import { endpoints } from '../../src/api/endpoints.ts';
import { operations } from '../../src/dialects/aws/operations.ts';
import { flagName } from '../../src/model/flags.ts';

const page = readFileSync(new URL('../../docs/aws-kms.md', import.meta.url), 'utf8');

test('the table of operations names each of them once, with its flag', () => {
  const rows = [...page.matchAll(/^\| `(\w+)` \| (?:`([\w.*-]+)`|any) \| (.+) \|$/gm)];
  const declared: readonly Endpoint[] = endpoints;
  const flags = new Map(declared.map(({ id, access }) => [id, access.kind === 'flag' ? access.action : undefined]));
  const told = rows.map(([, name, flag]) => [name, flag]);
  const wanted = Object.entries(operations).map(([name, { about }]) => {
    const action = about && flags.get(about);
    return [name, action && flagName(action).replace('<ringname>', 'NAME')];
  });
  assert.deepEqual(
    told,
    wanted.sort(([a = ''], [b = '']) => (a < b ? -1 : 1)),
  );
});

test('what is refused is said to be', () => {
  for (const [, name = '', , does = ''] of page.matchAll(/^\| `(\w+)` \| (`[\w.*-]+`|any) \| (.+) \|$/gm)) {
    const operation = Object.entries(operations).find(([each]) => each === name)?.[1];
    const isRefused = operation?.plan.toString().includes('throw failure(type, message)') ?? false;
    assert.equal(does.startsWith('refused'), isRefused || name === 'RetireGrant', name);
  }
});
