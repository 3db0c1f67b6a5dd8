// Objects that clients filled to a limit, in any way: they are revoked, archived, recovered, replaced and destroyed as
// any other.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { attributeLimits } from '../../src/dialects/kmip/attribute-limits.ts';
import { reasons } from '../../src/dialects/kmip/reasons.ts';
import { tags } from '../../src/dialects/kmip/tags.ts';
import {
  all,
  enumeration,
  fieldOf,
  type Item,
  integer,
  interval,
  long,
  structure,
  text,
} from '../../src/dialects/kmip/ttlv.ts';
import { type Appliance, testAppliance } from '../support/appliance.ts';
import { type Attr, attr, idIn, KmipClient, template, uid } from '../support/kmip-client.ts';
import { type Prng, prng } from '../support/prng.ts';

const value = tags.attributeValue;
/** Text that is as long as an attribute may be. */
const longest = 'v'.repeat(attributeLimits.valueBytes - 16);

/** Ways to fill an object: each gives the n-th attribute; the client adds them until one is refused. */
const fillings: Readonly<Record<string, (n: number, random: Prng) => Attr>> = {
  bytes: (n) => ['Object Group', `${n}${longest.slice(4)}`],
  'short values': (n) => ['Object Group', `g${n}`],
  names: (n, { int }) => ['Name', `${n}-${'é'.repeat(int(100))}`],
  custom: (n, { int }) => [`x-${n}`, 'c'.repeat(int(900))],
  links: (n, { int }) => [
    'Link',
    structure(value, enumeration(tags.linkType, 0x108 + int(4)), text(tags.linkedObjectIdentifier, `mkey_${n}`)),
  ],
  'long links': (n) => [
    'Link',
    structure(value, enumeration(tags.linkType, 0x108), text(tags.linkedObjectIdentifier, `${n}${longest.slice(60)}`)),
  ],
  information: (n, { int }) => [
    'Application Specific Information',
    structure(value, text(tags.applicationNamespace, `n${n}`), text(tags.applicationData, longest.slice(0, int(3900)))),
  ],
  parameters: (n) => ['Cryptographic Parameters', structure(value, integer(tags.tagLength, n))],
  'one of each': (n) =>
    (
      [
        ['Contact Information', longest],
        ['Operation Policy Name', longest],
        ['Description', longest],
        ['Comment', longest],
        ['PKCS#12 Friendly Name', longest],
        ['Process Start Date', 9e9],
        ['Protect Stop Date', 9e9],
        ['Deactivation Date', 9.1e9],
        ['Usage Limits', structure(value, long(tags.usageLimitsTotal, 9n), enumeration(tags.usageLimitsUnit, 1))],
      ] as readonly Attr[]
    )[n] ?? ['x-more', 'v'.repeat(5000)],
};

/** Adds attributes until one does not fit any more. */
async function fill(c: KmipClient, id: string, way: string, random: Prng): Promise<number> {
  const next = fillings[way] ?? assert.fail();
  for (let n = 0; n < 1000; n += 20) {
    const items = Array.from({ length: 20 }, (_, at) => ({
      operation: 'Add Attribute',
      fields: [uid(id), attr(...next(n + at, random))],
    }));
    const results = await c.batch(items, { header: [enumeration(tags.batchErrorContinuationOption, 2)] });
    const last = results.at(-1);
    if (last?.status === 0) continue;
    assert.equal(last?.reason, reasons.invalidField, `${last?.message}`);
    return n + results.length - 1;
  }
  return assert.fail(`${way} has no limit`);
}

/** A reason for a revocation, as long as it may be. */
function reasonItem(code: number): Item {
  const head = structure(value, enumeration(tags.revocationReasonCode, code), text(tags.revocationMessage, ''));
  assert.equal(all(head, tags.revocationMessage).length, 1);
  return structure(
    tags.revocationReason,
    enumeration(tags.revocationReasonCode, code),
    text(tags.revocationMessage, 'm'.repeat(attributeLimits.valueBytes - 32)),
  );
}

async function archivedAndBack(c: KmipClient, id: string): Promise<void> {
  await c.did('Archive', [uid(id)]);
  assert.equal((await c.attribute(id, 'Archive Date')).length, 1);
  await c.did('Recover', [uid(id)]);
}

async function ended(c: KmipClient, id: string, code: number): Promise<void> {
  if ((await c.state(id)) === 1 && code !== 2) await c.did('Activate', [uid(id)]);
  await c.did('Revoke', [uid(id), reasonItem(code)]);
  assert.equal((await c.attribute(id, 'Revocation Reason')).length, 1);
  await archivedAndBack(c, id);
  await c.did('Destroy', [uid(id)]);
}

async function lives(a: Appliance, c: KmipClient, id: string, { chance, pick }: Prng): Promise<void> {
  const [offset] = chance(0.5) ? [interval(tags.offset, 5)] : [];
  await archivedAndBack(c, id);
  if (chance(0.5)) await c.did('Get', [uid(id)]);
  const next = idIn(await c.did('Re-key', [uid(id), ...(offset ? [offset] : [])]));
  assert.equal((await c.attribute(id, 'Link')).filter(isReplacement).length, 1);
  assert.equal((await c.attribute(next, 'Link')).length, 1);
  a.advance(10_000);
  const after = idIn(await c.did('Re-key', [uid(next), ...(offset ? [offset] : [])]));
  a.advance(10_000);
  for (const each of [id, next, after]) await ended(c, each, pick([1, 2]));
}

function isReplacement(link: Item): boolean {
  return link.type === 'structure' && fieldOf(link, tags.linkType, 'enumeration') === 0x106;
}

for (const way of Object.keys(fillings)) {
  test(`a key that is full of ${way} has all of its life before it`, async () => {
    const a = await testAppliance();
    const c = await KmipClient.make(a, 'kmip.*');
    const random = prng(way.length);
    const id = await c.aes();
    const count = await fill(c, id, way, random);
    assert.ok(count > 5, `${count} of ${way}`);
    await lives(a, c, id, random);
  });
}

test('keys that are filled at random have all of their lives before them', async () => {
  const a = await testAppliance();
  const c = await KmipClient.make(a, 'kmip.*');
  for (let seed = 1; seed <= 2; seed++) {
    const random = prng(seed);
    const id = await c.aes(['Name', `first ${seed}`]);
    const ways = Object.keys(fillings).toSorted(() => random.next() - 0.5);
    for (const way of ways.slice(0, 2)) await fill(c, id, way, random);
    await lives(a, c, id, random);
  }
});

test('what is given with a new object counts as what is added, and its pair is replaced when it is full', async () => {
  const a = await testAppliance();
  const c = await KmipClient.make(a, 'kmip.*');
  const random = prng(5);
  const much = (count: number) =>
    Array.from({ length: count }, (_, n): Attr => ['Object Group', `${n}${longest.slice(4)}`]);
  const create = (...given: Attr[]) => [
    enumeration(tags.objectType, 2),
    template(['Cryptographic Algorithm', 3], ['Cryptographic Usage Mask', 12], ...given),
  ];
  assert.equal(await c.refused('Create', create(...much(65))), reasons.invalidField);
  await c.did('Create', create(...much(63)));
  const parameters = structure(value, enumeration(tags.recommendedCurve, 7));
  const both = structure(tags.commonTemplateAttribute, [
    attr('Cryptographic Algorithm', 6),
    attr('Cryptographic Domain Parameters', parameters),
    attr('Cryptographic Usage Mask', 3),
  ]);
  const pair = await c.did('Create Key Pair', [both]);
  const halves = [tags.privateKeyUniqueIdentifier, tags.publicKeyUniqueIdentifier].map(
    (tag) => fieldOf(pair, tag, 'text') ?? '',
  );
  for (const id of halves) for (const way of ['links', 'bytes', 'custom']) await fill(c, id, way, random);
  const next = await c.did('Re-key Key Pair', [text(tags.privateKeyUniqueIdentifier, halves[0] ?? '')]);
  assert.ok(fieldOf(next, tags.publicKeyUniqueIdentifier, 'text'));
  for (const id of halves) await ended(c, id, 2);
});

test('a revocation with a message that is too long is refused, and changes nothing', async () => {
  const c = await KmipClient.make(await testAppliance(), 'kmip.*');
  const id = await c.aes();
  const reason = structure(
    tags.revocationReason,
    enumeration(tags.revocationReasonCode, 2),
    text(tags.revocationMessage, 'm'.repeat(5000)),
  );
  assert.equal(await c.refused('Revoke', [uid(id), reason]), reasons.invalidField);
  assert.equal(await c.state(id), 1);
});
