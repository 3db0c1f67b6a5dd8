// The asym service on the wire: its keyrings and keys, and the endpoints that make, fetch and rotate them.
import { z } from 'zod';
import { endpoint, missing } from './endpoint.ts';
import { sample } from './example-values.ts';
import { rotateBody, wrappedTo } from './keyrings.ts';
import { newRingName } from './ring-life.ts';
import {
  algorithm,
  base64,
  clientCustody,
  freeForm,
  idOf,
  kem,
  pathText,
  ringNamePattern,
  timestamp,
  trueParam,
} from './values.ts';

export const asymKeyring = z
  .object({
    id: idOf('ring').meta({ description: 'id of the KeyRing', examples: [sample.asymRingId] }),
    name: z.string().meta({ pattern: ringNamePattern, description: 'the name in lower case', examples: ['devices'] }),
    displayName: z
      .string()
      .meta({ pattern: ringNamePattern, description: 'the name as it was given', examples: ['Devices'] }),
    activeKey: idOf('key').meta({ description: 'id of the newest key', examples: [sample.asymKeyId] }),
    activeAlgorithm: algorithm,
    custody: clientCustody,
    kem,
    publicKey: base64.meta({ description: 'of the `kem`, base64 SPKI DER', examples: [sample.publicKey] }),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'AsymKeyRing', description: 'a KeyRing of the asym service' });
export type AsymKeyRing = z.output<typeof asymKeyring>;

export const asymKey = z
  .object({
    id: idOf('key').meta({ description: 'id of the key', examples: [sample.asymKeyId] }),
    type: z.enum(['AES256']).meta({ description: 'what the key is for' }),
    kem,
    props: freeForm.meta({ examples: [{}] }),
    keyData: z
      .object({
        key: base64.meta({
          description: "the key's 32 bytes, wrapped by HPKE: base64 of `enc` and ciphertext",
          examples: [sample.wrappedKey],
        }),
      })
      .meta({ description: 'the wrapped key' }),
  })
  .meta({ id: 'AsymKey', description: "a key of an asym KeyRing, wrapped to the ring's public key" });
export type AsymKey = z.output<typeof asymKey>;

const readAsymKey = asymKey.extend({ publicKey: wrappedTo }).meta({
  id: 'ReadAsymKey',
  description: 'a key of an asym KeyRing, wrapped, and the public key that it is wrapped to',
});

const createAsymKeyringBody = z.object({
  name: newRingName('Devices'),
  algo: algorithm.exactOptional(),
  kem: kem.exactOptional().meta({ description: "default: the server's" }),
  props: freeForm.exactOptional().meta({ description: 'kept with the KeyRing', examples: [{}] }),
  keyProps: freeForm.exactOptional().meta({ description: 'the `props` of each of its keys', examples: [{}] }),
});
const createAsymKeyringAnswer = z.object({
  ring: asymKeyring,
  key: asymKey,
  privateKey: base64.meta({
    description: 'of the `kem`, base64 PKCS#8 DER; told once, never stored',
    examples: [sample.privateKey],
  }),
});
const rotateAsymAnswer = z.object({ key: asymKey });

const tag = 'Asym';
const unknown = missing('no such KeyRing or key');

export const asymEndpoints = [
  endpoint('createAsymKeyring', {
    tag,
    summary: 'Make an asym KeyRing with its first key',
    access: { kind: 'flag', action: 'asym.create', about: { from: 'body', field: 'name' } },
    body: createAsymKeyringBody,
    answer: createAsymKeyringAnswer,
  }),
  endpoint('getAsymKey', {
    tag,
    summary: 'Read a key of an asym KeyRing',
    access: { kind: 'flag', action: 'asym.read', ring: { from: 'path', param: 'ringname', byId: true } },
    params: z.object({ ringname: pathText, keyId: pathText }),
    query: z.object({
      id: trueParam.exactOptional().meta({ description: '`true`: ringname is the KeyRing id' }),
    }),
    answer: readAsymKey,
    errors: unknown,
  }),
  endpoint('rotateAsymKeyring', {
    tag,
    summary: 'Give an asym KeyRing a new active key',
    access: { kind: 'flag', action: 'asym.rotate', ring: { from: 'body', field: 'ringname' } },
    body: rotateBody,
    answer: rotateAsymAnswer,
    errors: unknown,
  }),
] as const;
