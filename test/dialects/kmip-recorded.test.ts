// Messages that were recorded of clients of KMIP are answered as they were then: the same results, and the same
// fields of the same types, whatever ids, dates and random bytes are in them.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { toHex } from '../../src/crypto/bytes.ts';
import { tags } from '../../src/dialects/kmip/tags.ts';
import {
  decodeItem,
  encodeItem,
  enumeration,
  type Item,
  type Structure,
  structure,
} from '../../src/dialects/kmip/ttlv.ts';
import { testAppliance } from '../support/appliance.ts';
import { type Attr, KmipClient, template, uid } from '../support/kmip-client.ts';
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

/** Bytes of an answer that clients send again. */
const madeTags: readonly number[] = [
  tags.data,
  tags.ivCounterNonce,
  tags.macData,
  tags.signatureData,
  tags.authenticationTag,
];

/** The item with ids and bytes of earlier answers as they are now. */
function mapped(item: Item, now: ReadonlyMap<string, string>): Item {
  if (item.type === 'structure') return { ...item, value: item.value.map((each) => mapped(each, now)) };
  if (item.type === 'text') return { ...item, value: now.get(item.value) ?? item.value };
  if (item.type !== 'bytes') return item;
  const made = now.get(toHex(item.value));
  return made === undefined ? item : { ...item, value: hex(made) };
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
  if (then.type === 'bytes' && now.type === 'bytes' && madeTags.includes(then.tag)) {
    ids.set(toHex(then.value), toHex(now.value));
  }
}

/** Texts differ, and an early recording has Located Items without being asked. */
const untold: readonly number[] = [tags.resultMessage, tags.locatedItems];

/** Tags and types, and values of those fields that say what happened. */
function shape(item: Item): string {
  const name = item.tag.toString(16).slice(2);
  if (item.type === 'structure') {
    if (item.tag === tags.attribute) return `attribute ${String(item.value[0]?.value)}`;
    const inside = item.value.filter(({ tag }) => !untold.includes(tag)).map(shape);
    // Attributes come in any order.
    const isList = item.value.some(({ tag }) => tag === tags.attribute || tag === tags.attributeReference);
    return `${name}{${(isList || item.tag === tags.attributes ? inside.sort() : inside).join(' ')}}`;
  }
  const isTold: readonly number[] = [tags.resultStatus, tags.resultReason, tags.operation, tags.objectType];
  return isTold.includes(item.tag) ? `${name}=${String(item.value)}` : `${name}:${item.type}`;
}

/** The ids that a request names, and the attributes that it looks for. */
function named(item: Item): { readonly ids: readonly string[]; readonly attributes: readonly Structure[] } {
  if (item.type === 'text') return { ids: idTags.includes(item.tag) ? [item.value] : [], attributes: [] };
  if (item.type !== 'structure') return { ids: [], attributes: [] };
  if (item.tag === tags.attribute) return { ids: [], attributes: [item] };
  const inside = item.value.map(named);
  return { ids: inside.flatMap(({ ids }) => ids), attributes: inside.flatMap(({ attributes }) => attributes) };
}

type StandIn = (client: KmipClient, request: Item) => Promise<readonly string[]>;

const activated = async (client: KmipClient, ids: readonly string[]): Promise<readonly string[]> => {
  for (const id of ids) await client.did('Activate', [uid(id)]);
  return ids;
};

/** An active key with the attributes that the request looks for. */
const aes: StandIn = async (client, request) => {
  const found = named(request).attributes.map((each): Attr => {
    const [name, value] = [each.value[0]?.value, each.value.at(-1)];
    assert.ok(value);
    return [String(name), value];
  });
  return activated(client, [await client.aes(...found)]);
};

let made = 0;

/** An active key with a name of its own. */
const other: StandIn = async (client) => activated(client, [await client.aes(['Name', `stand-in ${++made}`])]);

const revoked: StandIn = async (client, request) => {
  const ids = await aes(client, request);
  const reason = structure(tags.revocationReason, enumeration(tags.revocationReasonCode, 5));
  for (const id of ids) await client.did('Revoke', [uid(id), reason]);
  return ids;
};

/** A private key and its public key. */
function pair(mask: readonly [number, number]): StandIn {
  return async (client) => {
    const payload = await client.did('Create Key Pair', [
      {
        ...template(['Cryptographic Algorithm', 4], ['Cryptographic Length', 2048]),
        tag: tags.commonTemplateAttribute,
      },
      { ...template(['Cryptographic Usage Mask', mask[0]]), tag: tags.privateKeyTemplateAttribute },
      { ...template(['Cryptographic Usage Mask', mask[1]]), tag: tags.publicKeyTemplateAttribute },
    ]);
    return activated(
      client,
      payload.value.map(({ value }) => String(value)),
    );
  };
}

/** Objects that an exchange presumes, by its place: what made them was not recorded. Their ids are the first named. */
const presumed: Readonly<Record<string, Readonly<Record<number, StandIn>>>> = {
  'openbao-seal.json': { 1: other, 5: pair([8, 4]) },
  'mysql-okv.json': { 0: async (client) => [await client.aes()] },
  'ovh-kmip-go.json': {
    ...{ 25: other, 26: other, 27: other, 30: aes, 33: other, 34: other, 38: other, 40: other },
    ...{ 44: other, 48: aes, 49: aes, 51: aes, 53: pair([1, 2]), 55: revoked },
    ...{ 57: other, 59: other },
  },
};

/** Ids of the public keys in recordings that name the private one first. */
const publicKeys: Readonly<Record<string, string>> = {
  'openbao-seal.json': '9f544482',
  'ovh-kmip-go.json': '262691e9',
};

/** Exchanges before which the object that they name was activated. */
const activations: Readonly<Record<string, readonly number[]>> = {
  'libmongocrypt.json': [4],
  'pykmip.json': [51, 92, 133],
};

for (const file of clients) {
  test(`what was recorded of ${file.slice(0, -5)} is answered as it was then`, async () => {
    const a = await testAppliance();
    const client = await KmipClient.make(a, 'kmip.*');
    const ids = new Map<string, string>();
    const exchanges: Exchange[] = JSON.parse(readFileSync(new URL(file, directory), 'utf8'));
    const wrong: string[] = [];
    for (const [n, { version, operation, means, request, response }] of exchanges.entries()) {
      a.advance(1000);
      const asked = decodeItem(hex(request));
      const [first = ''] = named(asked).ids;
      const standIn = presumed[file]?.[n];
      if (standIn) {
        const [id = '', open] = await standIn(client, asked);
        ids.set(first, id);
        const whole = exchanges.flatMap((each) => named(decodeItem(hex(each.request))).ids);
        const publicKey = whole.find((each) => each.startsWith(publicKeys[file] ?? '-'));
        if (open !== undefined && publicKey !== undefined) ids.set(publicKey, open);
      }
      if (activations[file]?.includes(n)) await client.did('Activate', [uid(ids.get(first) ?? '')]);
      const answer = await client.send(encodeItem(mapped(asked, ids)));
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
