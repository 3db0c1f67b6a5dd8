// Mutated messages of real clients through the whole app: each ends in an answer that can be read, none in a failure of
// the server. KMS_KMIP_MUTANTS and KMS_KMIP_SEED run more of them, or others (scripts/fuzz-kmip): those of a failure are
// sent again with its seed and no more than 2,500 messages.
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

/** Messages to one appliance: objects pile up, and searches among them take longer with each. */
const perAppliance = 2500;

/** Lines of failures since the last look, which empties the log. */
function failures({ log }: Appliance): readonly string[] {
  return log.splice(0).filter((line) => /failed|"level":"error"|level.:50/.test(line));
}

/** Sends one appliance that many messages, and closes it. */
async function fuzzed(messages: number, partSeed: number): Promise<void> {
  const a = await testAppliance();
  const client = await KmipClient.make(a, 'kmip.*');
  const random = prng(partSeed);
  const ids: string[] = [await client.aes(), await client.aes(['Name', 'fuzz'])];
  for (let n = 0; n < messages; n++) {
    const bytes = written(mutated(random.pick(requests), ids, random, random.pick([0.01, 0.05, 0.2])), random);
    const told = () => `seed ${partSeed}, message ${n}: ${toHex(bytes)}`;
    const { status, bytes: answer } = await client.post(bytes);
    const failed = failures(a);
    if (status !== 200 || failed.length > 0) assert.fail(`${told()}: status ${status}\n${failed.join('\n')}`);
    for (const { payload, reason } of resultsOf(answer)) {
      if (reason === 0x100) assert.fail(told());
      const [made] = idsIn(payload);
      if (made !== undefined && ids.length < 40 && !ids.includes(made)) ids.push(idIn(payload));
    }
  }
  for (const { handle } of a.tenants) await handle.store.close();
}

/** Bytes that are in use; undefined unless Node runs with --expose-gc. */
function usedBytes(): number | undefined {
  if (!globalThis.gc) return undefined;
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test('mutated messages are answered, whatever is in them', async (t) => {
  const parts = Math.ceil(runs / perAppliance);
  const begun = process.hrtime.bigint();
  let before: number | undefined;
  for (let part = 0; part < parts; part++) {
    await fuzzed(Math.min(perAppliance, runs - part * perAppliance), seed + part);
    // Code and caches are there after some parts.
    if (part === Math.floor(parts / 10)) before = usedBytes();
    if (parts >= 20 && part % Math.ceil(parts / 10) === 0) console.error(`${(part + 1) * perAppliance} messages`);
  }
  const seconds = Number(process.hrtime.bigint() - begun) / 1e9;
  const after = usedBytes();
  t.diagnostic(`${runs} messages, seeds ${seed} to ${seed + parts - 1}, ${seconds.toFixed(0)} s: no crash, no failure`);
  if (before === undefined || after === undefined || parts < 20) return;
  const grown = (after - before) / 1e6;
  t.diagnostic(`memory in use: ${(after / 1e6).toFixed(1)} MB, ${grown.toFixed(1)} MB more than after a tenth`);
  assert.ok(grown < 16, `${grown} MB are not given back`);
});
