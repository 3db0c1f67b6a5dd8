// What rings of all kinds have in common on the wire: how they are named, listed, deleted and brought back, and when
// they get a new key by themselves.
import { z } from 'zod';
import { missing } from './endpoint.ts';
import { pageQuery } from './page.ts';
import { idOf, pathText, requiredText, ringNamePattern, timestamp, trueParam } from './values.ts';

/** The name of a new one. */
export function newRingName(example: string) {
  return requiredText.meta({
    pattern: ringNamePattern,
    description:
      'a letter or digit, then at most 127 letters, digits, dots, underscores or hyphens; unique but for case',
    examples: [example],
  });
}

/** @param what comes of it, once a key is that old. */
export function ringAge(what: string) {
  return z
    .int()
    .min(3600)
    .nullable()
    .meta({ description: `${what}; \`null\`: any age`, examples: [7776000] });
}

export const ringListQuery = z.object({
  deleted: trueParam.exactOptional().meta({ description: '`true`: the deleted ones that can still be restored' }),
  ...pageQuery,
});

/** What a list tells of deleted ones. */
export const whenDeleted = {
  deletedAt: timestamp
    .exactOptional()
    .meta({ description: 'when it was deleted; RFC 3339, UTC, milliseconds. Only where deleted ones are listed' }),
  restorableUntil: timestamp.exactOptional().meta({
    description: 'until when it can be restored; RFC 3339, UTC, milliseconds. Only where deleted ones are listed',
  }),
};

export function deletedRing(name: string, id: string) {
  return z.object({
    name: z.string().meta({ pattern: ringNamePattern, description: 'the name, which is free again', examples: [name] }),
    id: idOf('ring').meta({ description: 'the id, under which it can be restored', examples: [id] }),
  });
}

/** Of an endpoint that brings one back by its id. */
export function restoringRing<const Kind extends 'keyring' | 'transit'>(kind: Kind) {
  return {
    access: {
      kind: 'flag',
      action: `${kind}.delete`,
      recorded: `${kind}.restore`,
      ring: { from: 'deleted-id', param: 'id' },
    },
    params: z.object({ id: pathText }),
    errors: missing('nothing to restore under this id'),
  } as const;
}
