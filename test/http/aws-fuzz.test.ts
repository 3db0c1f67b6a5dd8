// Whatever a caller of AWS KMS sends, the answer is one of its types, none of them an error of the server's, and one
// record. What is sent is chosen by a seed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldsOf, fieldTable, type OperationName } from '../../src/dialects/aws/field-table.ts';
import { around, base64, call } from '../support/aws-client.ts';
import { prng } from '../support/prng.ts';
import { deskOf } from './aws-samples.ts';

// Cast: the table's own names.
const names = Object.keys(fieldTable) as OperationName[];
const rounds = 12;

test('odd input of every operation is answered by a type of AWS KMS', async () => {
  const { a, key } = await around();
  const { keys } = await deskOf(a, key);
  const random = prng(20_261_130);
  const refs = [...Object.values(keys).flatMap(({ KeyId, Arn }) => [KeyId, Arn]), 'alias/none', 'arn:aws:kms:', ''];
  const odd = ['', 'x', 'x'.repeat(300), '\u0000', '\ud800', '../..', '{}', 'vault:v1:AAAA', base64('hello'), 'null'];
  const valueFor = (name: string, rule: string): unknown => {
    if (random.chance(0.1)) return random.pick([null, 0, -1, 1e300, true, [], {}, [null], [[]], { a: {} }, 'x']);
    if (/KeyId$/.test(name)) return random.pick(refs);
    const [kind = '', rest = ''] = rule.split(' ');
    if (kind.startsWith('word')) return random.pick(rest.split('|'));
    if (kind.startsWith('number')) return random.pick(rest.split('-').map(Number));
    if (kind.startsWith('blob')) return base64(random.bytes(random.int(300)));
    if (kind.startsWith('flag')) return random.chance(0.5);
    if (kind.startsWith('list')) return [random.pick(odd), { TagKey: random.pick(odd), TagValue: random.pick(odd) }];
    if (kind.startsWith('map')) return { [random.pick(odd)]: random.pick(odd) };
    return random.pick(odd);
  };
  const before = (await a.activity()).length;
  let count = 0;
  for (const name of names) {
    for (let n = 0; n < rounds; n++) {
      const fields = Object.entries(fieldsOf(name) as Record<string, string>).filter(() => random.chance(0.8));
      const given = Object.fromEntries(fields.map(([field, rule]) => [field, valueFor(field, rule)]));
      const got = await call(a, key, name, given);
      count++;
      const where = `${name} ${JSON.stringify(given)}: ${JSON.stringify(got)}`;
      assert.ok(got.status < 500, where);
      if (got.status !== 200) assert.match(got.__type, /^[A-Za-z]+Exception$/, where);
    }
  }
  assert.equal((await a.activity()).length, before + count);
});
