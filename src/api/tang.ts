// Tang key pairs on the wire: the endpoints that manage them. Tang clients have a listener of their own, with the paths
// and answers of that protocol.
import { z } from 'zod';
import { endpoint, missing } from './endpoint.ts';
import { sample } from './example-values.ts';
import { base64urlPattern, count, pathText, timestamp } from './values.ts';

const tag = 'Tang';

const pair = z
  .object({
    thumbprint: z.string().meta({
      pattern: base64urlPattern,
      description: 'of the key that signs (RFC 7638, SHA-256): what clevis has as `thp`, and what the pair is called',
      examples: [sample.tangThumbprint],
    }),
    exchange: z.string().meta({
      pattern: base64urlPattern,
      description: 'of the key that exchanges: what is in the headers of what was bound to the pair, as `kid`',
      examples: [sample.tangExchange],
    }),
    advertised: z
      .boolean()
      .meta({ description: 'whether what is bound from now on is bound to this pair', examples: [true] }),
    createdAt: timestamp,
    rotatedAt: timestamp.exactOptional().meta({ description: 'since when another pair is advertised' }),
    recoveries: count.meta({ description: 'how often something was recovered with it', examples: [3] }),
    recoveredAt: timestamp.exactOptional().meta({ description: 'when that was last' }),
  })
  .meta({ id: 'TangPair', description: 'a pair of keys for clients of Tang: one signs, one exchanges' });
export type TangPair = z.output<typeof pair>;

export const tangEndpoints = [
  endpoint('listTangPairs', {
    tag,
    summary: 'List the key pairs for clients of Tang, newest first',
    access: { kind: 'flag', action: 'tang.read' },
    answer: z.object({
      pairs: z.array(pair).meta({ description: 'at most 100; the one that is advertised comes first' }),
    }),
  }),
  endpoint('rotateTangPair', {
    tag,
    summary: 'Make a new key pair and advertise it; what was bound to earlier ones can still be recovered',
    access: { kind: 'flag', action: 'tang.rotate' },
    answer: z.object({ pair }),
  }),
  endpoint('deleteTangPair', {
    tag,
    summary: 'Delete a key pair that is no longer advertised, for good',
    access: { kind: 'flag', action: 'tang.delete' },
    params: z.object({ thumbprint: pathText }),
    answer: z.object({ pair }),
    errors: missing('no such key pair'),
  }),
] as const;
