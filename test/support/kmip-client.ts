// A KMIP client of the tests' own: it builds messages from items and reads answers, over an appliance in this process.
import assert from 'node:assert/strict';
import { attributeRules } from '../../src/dialects/kmip/attribute-rules.ts';
import { operations } from '../../src/dialects/kmip/operations.ts';
import { tags } from '../../src/dialects/kmip/tags.ts';
import {
  all,
  byteString,
  decodeItem,
  encodeItem,
  enumeration,
  fieldOf,
  type Item,
  integer,
  one,
  type Structure,
  structure,
  structureIn,
  text,
} from '../../src/dialects/kmip/ttlv.ts';
import { versionItem } from '../../src/dialects/kmip/versions.ts';
import type { Appliance } from './appliance.ts';
import { TestCertificate } from './client-certificates.ts';

export interface Result {
  readonly status: number;
  readonly reason: number | undefined;
  readonly message: string | undefined;
  readonly operation: number | undefined;
  readonly payload: Structure;
}

export interface Asked {
  readonly operation: string;
  readonly fields?: readonly Item[];
  readonly more?: readonly Item[];
}

interface MessageOptions {
  readonly version?: number;
  readonly header?: readonly Item[];
}

export type Attr = readonly [name: string, value: Item | string | number | boolean | Uint8Array, index?: number];

const value = tags.attributeValue;

function valueOfAttribute(name: string, given: Attr[1]): Item {
  if (typeof given === 'object' && !(given instanceof Uint8Array)) return { ...given, tag: value } as Item;
  const type = attributeRules.find((rule) => rule.name === name)?.type;
  if (given instanceof Uint8Array) return byteString(value, given);
  if (typeof given === 'boolean') return { tag: value, type: 'boolean', value: given };
  if (name === 'Name') return structure(value, text(tags.nameValue, String(given)), enumeration(tags.nameType, 1));
  if (type === 'enumeration') return enumeration(value, Number(given));
  if (type === 'date') return { tag: value, type: 'date', value: BigInt(given) };
  if (typeof given === 'number') return integer(value, given);
  return text(value, String(given));
}

/** An attribute of 1.x. */
export function attr(name: string, given: Attr[1], index?: number): Structure {
  return structure(
    tags.attribute,
    text(tags.attributeName, name),
    index === undefined ? undefined : integer(tags.attributeIndex, index),
    valueOfAttribute(name, given),
  );
}

export function template(...attributes: readonly Attr[]): Structure {
  return structure(
    tags.templateAttribute,
    attributes.map(([name, given, index]) => attr(name, given, index)),
  );
}

export const uid = (id: string): Item => text(tags.uniqueIdentifier, id);

/** Options of a message with a name and a password in its header. */
export const withPassword = (name: string, password: string): MessageOptions => ({
  header: [
    structure(
      tags.authentication,
      structure(
        tags.credential,
        enumeration(tags.credentialType, 1),
        structure(tags.credentialValue, text(tags.username, name), text(tags.password, password)),
      ),
    ),
  ],
});

/** Asks that a key come out wrapped by another, as NIST key wrap has it. */
export const wrappingBy = (kek: string, ...more: readonly Item[]): Structure =>
  structure(
    tags.keyWrappingSpecification,
    enumeration(tags.wrappingMethod, 1),
    structure(
      tags.encryptionKeyInformation,
      uid(kek),
      structure(tags.cryptographicParameters, enumeration(tags.blockCipherMode, 0x0d)),
    ),
    more,
  );

function codeOf(name: string): number {
  const found = operations.find((each) => each.name === name);
  return found?.code ?? Number(name);
}

export class KmipClient {
  readonly #appliance: Pick<Appliance, 'app'>;
  readonly #shown: TestCertificate['shown'];
  readonly certificate: TestCertificate;

  constructor(appliance: Pick<Appliance, 'app'>, certificate: TestCertificate) {
    this.#appliance = appliance;
    this.certificate = certificate;
    this.#shown = certificate.shown;
  }

  /** A client with an API key of these flags, and a pinned certificate. */
  static async make(a: Appliance, ...flags: string[]): Promise<KmipClient & { readonly keyid: string }> {
    const key = await a.keyWith(...flags);
    const certificate = await TestCertificate.alone(a.world.now());
    const body = { kind: 'certificate', certificate: certificate.pem };
    const { status, text: told } = await a.call('POST', `/auth/apikeys/${key.keyid}/proofs`, body);
    assert.equal(status, 200, told);
    return Object.assign(new KmipClient(a, certificate), { keyid: key.keyid });
  }

  /** The answer's bytes; undefined if there is none. */
  async send(message: Uint8Array): Promise<Uint8Array | undefined> {
    const { status, bytes } = await this.post(message);
    return status === 200 ? bytes : undefined;
  }

  /** `ends`: the answer is the last of its connection. */
  async post(
    message: Uint8Array,
  ): Promise<{ readonly status: number; readonly bytes: Uint8Array; readonly ends: boolean }> {
    const { outcome } = await this.#appliance.app.handle({
      method: 'POST',
      path: '/kmip',
      search: '',
      headers: {},
      surface: 'kmip',
      remoteAddress: '192.0.2.7',
      ...this.#shown,
      body: { read: async (limit) => (message.length > limit ? undefined : message) },
    });
    const { status, content, headers } = outcome;
    const bytes = content instanceof Uint8Array ? content : new Uint8Array();
    return { status, bytes, ends: headers?.Connection === 'close' };
  }

  /** Sends a batch and returns the results of its items. */
  async batch(items: readonly Asked[], { version = 14, header = [] }: MessageOptions = {}): Promise<readonly Result[]> {
    const answer = await this.send(encodeItem(requestOf(items, { version, header })));
    assert.ok(answer, 'the message was refused');
    return resultsOf(answer);
  }

  async ask(operation: string, fields: readonly Item[] = [], options: MessageOptions = {}): Promise<Result> {
    const [result] = await this.batch([{ operation, fields }], options);
    assert.ok(result);
    return result;
  }

  /** The payload of an operation that must succeed. */
  async did(operation: string, fields: readonly Item[] = [], options: MessageOptions = {}): Promise<Structure> {
    const result = await this.ask(operation, fields, options);
    assert.equal(result.status, 0, `${operation}: ${result.reason?.toString(16)} ${result.message}`);
    return result.payload;
  }

  /** The reason for which an operation is refused. */
  async refused(operation: string, fields: readonly Item[] = [], options: MessageOptions = {}): Promise<number> {
    const result = await this.ask(operation, fields, options);
    assert.equal(result.status, 1, `${operation} was done`);
    return result.reason ?? 0;
  }

  /** Makes an AES key and returns its id. */
  async aes(...attributes: readonly Attr[]): Promise<string> {
    const usual: readonly Attr[] = [
      ['Cryptographic Algorithm', 3],
      ['Cryptographic Length', 256],
      ['Cryptographic Usage Mask', 12],
    ];
    const all_ = [...usual.filter(([name]) => !attributes.some(([other]) => other === name)), ...attributes];
    return idIn(await this.did('Create', [enumeration(tags.objectType, 2), template(...all_)]));
  }

  /** The values of an attribute. */
  async attribute(id: string, name: string, options: MessageOptions = {}): Promise<readonly Item[]> {
    const payload = await this.did('Get Attributes', [uid(id), text(tags.attributeName, name)], options);
    return all(payload, tags.attribute).flatMap((each) => (each.type === 'structure' ? (one(each, value) ?? []) : []));
  }

  async state(id: string): Promise<number> {
    const [item] = await this.attribute(id, 'State');
    return Number(item?.value);
  }
}

export function requestOf(items: readonly Asked[], { version = 14, header = [] }: MessageOptions = {}): Structure {
  return structure(
    tags.requestMessage,
    structure(tags.requestHeader, versionItem(version), header, integer(tags.batchCount, items.length)),
    items.map(({ operation, fields = [], more = [] }, n) =>
      structure(
        tags.batchItem,
        enumeration(tags.operation, codeOf(operation)),
        items.length > 1 ? byteString(tags.uniqueBatchItemId, Uint8Array.of(n)) : undefined,
        structure(tags.requestPayload, fields),
        more,
      ),
    ),
  );
}

export function resultsOf(answer: Uint8Array): readonly Result[] {
  const message = decodeItem(answer);
  assert.ok(message.type === 'structure' && message.tag === tags.responseMessage);
  return all(message, tags.batchItem).map((item) => {
    assert.ok(item.type === 'structure');
    return {
      status: fieldOf(item, tags.resultStatus, 'enumeration') ?? -1,
      reason: fieldOf(item, tags.resultReason, 'enumeration'),
      message: fieldOf(item, tags.resultMessage, 'text'),
      operation: fieldOf(item, tags.operation, 'enumeration'),
      payload: structureIn(item, tags.responsePayload) ?? structure(tags.responsePayload),
    };
  });
}

/** The unique identifier in a payload. */
export function idIn(payload: Structure): string {
  return fieldOf(payload, tags.uniqueIdentifier, 'text') ?? assert.fail('no unique identifier');
}

export function idsIn(payload: Structure): readonly string[] {
  return all(payload, tags.uniqueIdentifier).map(({ value: id }) => String(id));
}

/** The bytes of the Key Material in the answer to Get. */
export function materialIn(payload: Structure, objectTag: number = tags.symmetricKey): Uint8Array {
  const block = structureIn(structureIn(payload, objectTag), tags.keyBlock);
  const found = structureIn(block, tags.keyValue);
  return fieldOf(found, tags.keyMaterial, 'bytes') ?? assert.fail('no key material');
}
