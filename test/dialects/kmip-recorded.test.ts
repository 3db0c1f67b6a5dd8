// What clients of KMIP were recorded to send is answered as they were answered then: the same results, and the same
// fields of the same types, whatever ids, dates and random bytes are in them.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { tags } from '../../src/dialects/kmip/tags.ts';
import { decodeItem, encodeItem, type Item } from '../../src/dialects/kmip/ttlv.ts';
import { testAppliance } from '../support/appliance.ts';
import { KmipClient } from '../support/kmip-client.ts';
import { hex } from '../support/vectors.ts';

interface Exchange {
  readonly version: string;
  readonly operation: string;
  readonly means: string;
  readonly request: string;
  readonly response: string;
}

const directory = new URL('../vectors/kmip/', import.meta.url);
const clients = readdirSync(directory).filter((name) => name !== 'malformed.json');

const idTags: readonly number[] = [
  tags.uniqueIdentifier,
  tags.privateKeyUniqueIdentifier,
  tags.publicKeyUniqueIdentifier,
  tags.linkedObjectIdentifier,
];

/** The item with every text replaced. */
function mapped(item: Item, texts: ReadonlyMap<string, string>): Item {
  if (item.type === 'structure') return { ...item, value: item.value.map((each) => mapped(each, texts)) };
  return item.type === 'text' ? { ...item, value: texts.get(item.value) ?? item.value } : item;
}

/** Learns from two answers of one shape which id stands for which. */
function learn(then: Item, now: Item, ids: Map<string, string>): void {
  if (then.type === 'structure' && now.type === 'structure') {
    then.value.forEach((each, n) => {
      const other = now.value[n];
      if (other) learn(each, other, ids);
    });
  }
  if (then.type === 'text' && now.type === 'text' && idTags.includes(then.tag)) ids.set(then.value, now.value);
}

/** Tags and types, and values of those fields that say what happened. */
function shape(item: Item): string {
  const name = item.tag.toString(16).slice(2);
  if (item.type === 'structure') {
    if (item.tag === tags.attribute) return `attribute ${String(item.value[0]?.value)}`;
    const inside = item.value.filter(({ tag }) => tag !== tags.resultMessage).map(shape);
    return `${name}{${inside.join(' ')}}`;
  }
  const isTold: readonly number[] = [tags.resultStatus, tags.resultReason, tags.operation, tags.objectType];
  return isTold.includes(item.tag) ? `${name}=${String(item.value)}` : `${name}:${item.type}`;
}

for (const file of clients) {
  test(`what was recorded of ${file.slice(0, -5)} is answered as it was then`, async () => {
    const a = await testAppliance();
    const client = await KmipClient.make(a, 'kmip.*');
    const ids = new Map<string, string>();
    const exchanges: Exchange[] = JSON.parse(readFileSync(new URL(file, directory), 'utf8'));
    const wrong: string[] = [];
    for (const [n, { version, operation, means, request, response }] of exchanges.entries()) {
      a.advance(1000);
      const answer = await client.send(encodeItem(mapped(decodeItem(hex(request)), ids)));
      assert.ok(answer, `${n} ${operation}`);
      const [then, now] = [decodeItem(hex(response)), decodeItem(answer)];
      learn(then, now, ids);
      if (shape(then) !== shape(now)) {
        wrong.push(`${n} ${version} ${operation} (${means})\n then ${shape(then)}\n now  ${shape(now)} ${said(now)}`);
      }
    }
    assert.deepEqual(wrong, [], wrong.join('\n'));
  });
}

function said(item: Item): string {
  if (item.type === 'structure') return item.value.map(said).join('');
  return item.tag === tags.resultMessage ? ` "${String(item.value)}"` : '';
}
