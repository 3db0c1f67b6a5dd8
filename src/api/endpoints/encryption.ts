// Issuing keys and headers, and resolving them.
import { z } from 'zod';
import { decryptAnswer, decryptBody, encryptAnswer, encryptBody, hashAnswer, headerAnswer } from '../encryption.ts';
import { endpoint } from '../endpoint.ts';
import { errorBody } from '../error.ts';
import { pathText } from '../values.ts';

const tag = 'Encryption';
const gone = { 404: { description: 'its KeyRing or key is gone', schema: errorBody } };

export const encryptionEndpoints = [
  endpoint({
    id: 'encrypt',
    method: 'POST',
    path: '/ks/encrypt',
    tag,
    summary: 'Get a key, a hash and a header for an encryption',
    access: { kind: 'flag', action: 'keyring.encrypt', ring: { from: 'body', field: 'ringname' } },
    body: encryptBody,
    answer: encryptAnswer,
    errors: { 404: { description: 'no such KeyRing or Asset', schema: errorBody } },
  }),
  endpoint({
    id: 'decrypt',
    method: 'POST',
    path: '/ks/decrypt',
    changes: false,
    tag,
    summary: 'Resolve a hash or header to its key, and verify the Asset',
    access: { kind: 'flag', action: 'keyring.decrypt', ring: { from: 'sealed-body' } },
    body: decryptBody,
    answer: decryptAnswer,
    errors: {
      ...gone,
      422: { description: 'the Asset does not verify; `asset.valid` is false', schema: decryptAnswer },
    },
  }),
  endpoint({
    id: 'resolveHash',
    method: 'GET',
    path: '/ks/hash/{hash}',
    tag,
    summary: 'Resolve a hash to its KeyRing and key',
    access: { kind: 'flag', action: 'keyring.read', ring: { from: 'hash', param: 'hash' } },
    params: z.object({ hash: pathText }),
    answer: hashAnswer,
    errors: gone,
  }),
  endpoint({
    id: 'inspectHeader',
    method: 'GET',
    path: '/ks/header/{header}',
    tag,
    summary: 'Read a header',
    access: { kind: 'flag', action: 'keyring.read', ring: { from: 'header', param: 'header' } },
    params: z.object({ header: pathText }),
    answer: headerAnswer,
    errors: { 404: { description: 'not a header, or its KeyRing is gone', schema: errorBody } },
  }),
] as const;
