// Common to all kinds of rings on the wire: names, listing, deletion, restoring, and automatic rotation.
import { z } from 'zod';
import { missing } from './endpoint.ts';
import { pageQuery } from './page.ts';
import { idOf, pathText, requiredText, ringNamePattern, timestamp, trueParam } from './values.ts';

/** Name of a new ring. */
export function newRingName(example: string) {
  return requiredText.meta({
    pattern: ringNamePattern,
    description:
      'a letter or digit, then at most 127 letters, digits, dots, underscores or hyphens; unique but for case',
    examples: [example],
  });
}

/** @param what happens once a key is that old. */
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

/** Extra fields of deleted rings in a list. */
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

/** Common declaration of the endpoints that restore a ring by its id. */
export function restoringRing<const Kind extends 'keyring' | 'key'>(kind: Kind) {
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
