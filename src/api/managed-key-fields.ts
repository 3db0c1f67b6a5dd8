// The fields of managed keys on the wire, which the endpoints in managed-keys.ts share.
import { z } from 'zod';
import { keyStates } from '../model/key-states.ts';
import { type KeyUse, keyTypes, keyUses } from '../model/key-types.ts';
import { kmipTypes } from '../model/kmip-types.ts';
import { aliasPattern } from '../model/names.ts';
import { lastTime } from '../model/timestamp.ts';
import { sample } from './example-values.ts';
import { ringAge } from './ring-life.ts';
import { callerId, epochTime, freeForm, requiredText, textList, thingList, timestamp } from './values.ts';

export const type = z.enum(keyTypes).meta({ description: 'what the key is' });
export const uses = z
  .array(z.enum(keyUses))
  .meta({ description: 'what it may be used for', examples: [['encrypt', 'decrypt']] });
const isUse = (item: unknown): boolean => keyUses.some((use) => use === item);
export const wantedUses = thingList<KeyUse>(keyUses.length, (item) =>
  isUse(item) ? undefined : `expected one of ${keyUses.join(', ')}`,
).meta({
  type: 'array',
  maxItems: keyUses.length,
  items: { type: 'string', enum: [...keyUses] },
  description: 'what it may be used for',
  examples: [['encrypt', 'decrypt']],
});
export const keyState = z.enum(keyStates).meta({ description: 'its state, in the words of NIST SP 800-57' });
export const firstState = z
  .enum(['active', 'suspended'])
  .meta({ description: '`suspended`: it does nothing until it is activated; `active` if absent' });
export const origin = z
  .enum(['generated', 'imported'])
  .meta({ description: 'whether the appliance made the key, or somebody brought it' });
export const derived = z
  .boolean()
  .meta({ description: 'each message has a key of its own, derived by its `context`', examples: [false] });
export const minDecryptVersion = z
  .int()
  .min(0)
  .meta({ description: 'messages and signatures of older versions are refused', examples: [1] });
export const minEncryptVersion = z
  .int()
  .min(0)
  .meta({ description: 'the oldest version that may protect anything new; 0: any that decrypts', examples: [0] });
export const deletionAllowed = z.boolean().meta({ description: 'whether the key may be deleted', examples: [false] });
export const exportable = z
  .boolean()
  .meta({ description: 'whether the key may leave the appliance; once `false`, it stays so', examples: [false] });
export const rotateAfter = ringAge(
  'how old a version gets, in whole seconds: the next use past that age makes a new one',
);
export const tags = freeForm.meta({ description: 'texts by name, at most 50', examples: [{ team: 'payments' }] });
export const props = freeForm.meta({ description: 'kept with the key', examples: [{ ticket: 'OPS-7' }] });
export const patch = freeForm.meta({ description: 'values by name', examples: [{ team: 'payments' }] });
const date = (what: string) =>
  epochTime
    .min(0)
    .max(lastTime)
    .nullable()
    .meta({ description: `${what}; \`null\`: never` });
export const activateAt = date('when it becomes active, in epoch milliseconds; only of a key that was never active');
export const deactivateAt = date('from when on it protects nothing new, in epoch milliseconds');
export const alias = requiredText.meta({
  pattern: aliasPattern,
  description: 'another name of the key, which may contain `/`; unique but for case',
  examples: ['app/db'],
});
export const newAlias = z
  .boolean()
  .meta({ description: 'whether the alias must be new; otherwise one of another key moves', examples: [true] });
export const aliases = textList(50, aliasPattern).meta({
  description: 'other names of the key',
  examples: [['app/db']],
});
export const used = z
  .boolean()
  .exactOptional()
  .meta({ description: '`true`: even if it was used in the last 24 hours', examples: [true] });

export const warning = z
  .string()
  .exactOptional()
  .meta({ description: 'why the result should not be trusted blindly', examples: ['the key is compromised'] });

export const aws = z
  .object({
    account: z.string().meta({ description: "the tenant's account of twelve digits", examples: ['123456789012'] }),
    keyId: z.string().meta({
      description: 'the id of the key, as ARNs have it',
      examples: ['019b76da-a800-7000-8000-000000000001'],
    }),
  })
  .exactOptional()
  .meta({ description: 'by what clients of AWS KMS know it; not in lists' });

export const kmip = z
  .object({
    type: z.enum(Object.values(kmipTypes)).meta({ description: 'what it is to KMIP', examples: ['symmetric-key'] }),
    names: z.array(z.string()).meta({ description: 'its names there', examples: [['volume 7']] }),
    owner: z
      .string()
      .exactOptional()
      .meta({ description: 'id of the API key that made it over KMIP', examples: [sample.apikeyId] }),
    lastGet: z
      .object({
        caller: callerId.meta({ description: 'who got it', examples: [sample.apikeyId] }),
        at: timestamp.meta({ description: 'when; RFC 3339, UTC, milliseconds' }),
      })
      .exactOptional()
      .meta({ description: 'the last time that its value left the appliance over KMIP' }),
  })
  .exactOptional()
  .meta({ description: 'by what clients of KMIP know it; in lists only with `kmip=true`' });
