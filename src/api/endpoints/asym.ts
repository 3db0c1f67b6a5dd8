// The asym service.
import { z } from 'zod';
import { asymKey, createAsymKeyringAnswer, createAsymKeyringBody, rotateAsymAnswer } from '../asym.ts';
import { endpoint } from '../endpoint.ts';
import { errorBody } from '../error.ts';
import { rotateBody } from '../keyring.ts';
import { pathText, trueParam } from '../values.ts';

const tag = 'Asym';
const unknown = { 404: { description: 'no such KeyRing or key', schema: errorBody } };

export const asymEndpoints = [
  endpoint({
    id: 'createAsymKeyring',
    method: 'POST',
    path: '/asym/keyrings',
    tag,
    summary: 'Make an asym KeyRing with its first key',
    access: { kind: 'flag', action: 'asym.create', about: { from: 'body', field: 'name' } },
    body: createAsymKeyringBody,
    answer: createAsymKeyringAnswer,
  }),
  endpoint({
    id: 'getAsymKey',
    method: 'GET',
    path: '/asym/keyrings/{ringname}/keys/{keyId}',
    tag,
    summary: 'Read a key of an asym KeyRing',
    access: { kind: 'flag', action: 'asym.read', ring: { from: 'path', param: 'ringname', byId: true } },
    params: z.object({ ringname: pathText, keyId: pathText }),
    query: z.object({
      id: trueParam.exactOptional().meta({ description: '`true`: ringname is the KeyRing id' }),
    }),
    answer: asymKey,
    errors: unknown,
  }),
  endpoint({
    id: 'rotateAsymKeyring',
    method: 'POST',
    path: '/asym/rotate',
    tag,
    summary: 'Give an asym KeyRing a new active key',
    access: { kind: 'flag', action: 'asym.rotate', ring: { from: 'body', field: 'ringname' } },
    body: rotateBody,
    answer: rotateAsymAnswer,
    errors: unknown,
  }),
] as const;
