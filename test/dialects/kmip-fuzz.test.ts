// Mutated messages of real clients through the whole app: each ends in an answer that can be read, none in a failure of
// the server. KMS_KMIP_MUTANTS and KMS_KMIP_SEED run more of them, or others (scripts/fuzz-kmip).
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { toHex } from '../../src/crypto/bytes.ts';
import { tags } from '../../src/dialects/kmip/tags.ts';
import { decodeItem, encodeItem, type Item } from '../../src/dialects/kmip/ttlv.ts';
import { type Appliance, testAppliance } from '../support/appliance.ts';
import { idIn, idsIn, KmipClient, resultsOf } from '../support/kmip-client.ts';
import { type Prng, prng } from '../support/prng.ts';
import { hex } from '../support/vectors.ts';

const directory = new URL('../vectors/kmip/', import.meta.url);
const recorded: { readonly operation: string; readonly request: string }[] = readdirSync(directory)
  .filter((name) => name !== 'malformed.json')
  .flatMap((name) => JSON.parse(readFileSync(new URL(name, directory), 'utf8')));
/** Making pairs takes long, and what they are made of is a template like any other. */
const requests = recorded
  .filter(({ operation }) => !/Key Pair/.test(operation))
  .map(({ request }) => decodeItem(hex(request)));

const runs = Number(process.env.KMS_KMIP_MUTANTS ?? 1500);
const seed = Number(process.env.KMS_KMIP_SEED ?? 20261129);
const idTags: readonly number[] = [tags.uniqueIdentifier, tags.linkedObjectIdentifier];

/** The item with ids of objects that are there, and some of its values changed. */
function mutated(item: Item, ids: readonly string[], random: Prng, chance: number): Item {
  const { pick, int, bytes } = random;
  if (item.type === 'structure') {
    const value = item.value.map((each) => mutated(each, ids, random, chance));
    if (!random.chance(chance)) return { ...item, value };
    const at = int(value.length + 1);
    const changes: (() => Item[])[] = [
      () => value.toSpliced(at, 1),
      () => value.toSpliced(at, 0, ...value.slice(at, at + 1)),
      () => value.toReversed(),
    ];
    return { ...item, value: pick(changes)() };
  }
  if (item.type === 'text' && idTags.includes(item.tag) && ids.length > 0) return { ...item, value: pick(ids) };
  if (!random.chance(chance)) return item;
  switch (item.type) {
    case 'integer':
      return { ...item, value: pick([-1, 0, 1, 8, 128, 256, 65_536, 2 ** 31 - 1, -(2 ** 31)]) };
    case 'enumeration':
    case 'interval':
      return { ...item, value: pick([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0x100, 0x80000000, 0xffffffff, int(0x32)]) };
    case 'text':
      return { ...item, value: pick(['', '\0', 'State', 'Link', 'x-', 'Activation Date', 'é'.repeat(int(300))]) };
    case 'bytes':
    case 'big':
      return { ...item, value: bytes(item.type === 'big' ? 8 : int(64)) };
    case 'boolean':
      return { ...item, value: !item.value };
    default:
      return { ...item, value: pick([0n, 1n, -1n, 2n ** 62n, -(2n ** 63n), 1_800_000_000n]) };
  }
}

/** Bytes of the message, perhaps with some of them changed. */
function written(item: Item, { chance, int }: Prng): Uint8Array {
  const bytes = encodeItem(item);
  if (chance(0.2)) bytes[int(bytes.length)] = int(256);
  return bytes;
}

function failures(a: Appliance): readonly string[] {
  return a.log.filter((line) => /failed|"level":"error"|level.:50/.test(line));
}

test('mutated messages are answered, whatever is in them', async () => {
  const a = await testAppliance();
  const client = await KmipClient.make(a, 'kmip.*');
  const random = prng(seed);
  const ids: string[] = [await client.aes(), await client.aes(['Name', 'fuzz'])];
  let answered = 0;
  for (let n = 0; n < runs; n++) {
    const bytes = written(mutated(random.pick(requests), ids, random, random.pick([0.01, 0.05, 0.2])), random);
    const { status, bytes: answer } = await client.post(bytes);
    assert.equal(status, 200, `run ${n}: ${toHex(bytes)}`);
    for (const { payload, reason } of resultsOf(answer)) {
      assert.notEqual(reason, 0x100, `run ${n}: ${toHex(bytes)}\n${failures(a).join('\n')}`);
      const [made] = idsIn(payload);
      if (made !== undefined && ids.length < 40 && !ids.includes(made)) ids.push(idIn(payload));
    }
    answered++;
    assert.deepEqual(failures(a), [], `run ${n}: ${toHex(bytes)}`);
  }
  assert.equal(answered, runs);
});
