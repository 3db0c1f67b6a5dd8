// Random bytes and hashes on the wire, for software that takes them from where its keys are. They need no key.
import { z } from 'zod';
import { mostRandomBytes, plainHashes } from '../model/key-types.ts';
import { endpoint } from './endpoint.ts';
import { sample } from './example-values.ts';
import { base64, text } from './values.ts';

const tag = 'Key operations';

export const keyToolEndpoints = [
  endpoint('generateRandom', {
    tag,
    summary: 'Get random bytes',
    access: { kind: 'credential', action: 'key.random' },
    changes: false,
    body: z.object({
      bytes: z
        .int()
        .min(1)
        .max(mostRandomBytes)
        .exactOptional()
        .meta({ description: 'how many; 32 if absent', examples: [32] }),
    }),
    answer: z.object({ random: base64.meta({ description: 'base64', examples: [sample.dataKey] }) }),
  }),
  endpoint('hashMessage', {
    tag,
    summary: 'Get the hash of a message',
    access: { kind: 'credential', action: 'key.hash' },
    changes: false,
    body: z.object({
      input: text.exactOptional().meta({
        description: 'the message, base64; nothing if absent',
        contentEncoding: 'base64',
        examples: ['aGVsbG8='],
      }),
      hash: z.enum(plainHashes).exactOptional().meta({ description: '`sha2-256` if absent' }),
    }),
    answer: z.object({ hash: base64.meta({ description: 'base64', examples: [sample.messageHash] }) }),
  }),
] as const;
