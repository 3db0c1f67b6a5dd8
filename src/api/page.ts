// Pages of lists and searches: the query parameters that ask for one, and the schema of a page.
import { z } from 'zod';
import { sample } from './example-values.ts';
import { base64urlPattern, count } from './values.ts';

export const defaultLimit = 100;
export const maxLimit = 10_000;

/** The query parameters of every paginated endpoint. */
export const pageQuery = {
  cursor: z.string().exactOptional().meta({
    description: 'the `nextCursor` of the page before, for the same filters; absent for the first page',
    pattern: base64urlPattern,
  }),
  limit: z
    .string()
    .regex(/^[0-9]+$/, 'must be an integer of at least 1')
    .transform((digits) => Math.min(Number(digits), maxLimit))
    .refine((limit) => limit >= 1, 'must be an integer of at least 1')
    .meta({
      type: 'integer',
      minimum: 1,
      default: defaultLimit,
      description: `items per page; above ${maxLimit} counts as ${maxLimit}`,
      examples: [defaultLimit],
    })
    .exactOptional(),
};

export const pageInfo = z
  .object({
    limit: z
      .int()
      .min(1)
      .max(maxLimit)
      .meta({ description: 'the page size that was used', examples: [defaultLimit] }),
    count: count.meta({ description: 'how many items are in this page', examples: [1] }),
    hasMore: z.boolean().meta({ description: 'there are more pages', examples: [true] }),
    nextCursor: z
      .string()
      .exactOptional()
      .meta({
        description: 'the `cursor` of the next page; only when there is one',
        pattern: base64urlPattern,
        examples: [sample.cursor],
      }),
  })
  .meta({ id: 'PageInfo', description: 'where in a list a page stands' });
export type PageInfo = z.output<typeof pageInfo>;

/** Items of a list that come along with something else, at most. */
export const mostAlong = 200;

/** The beginning of a list that comes along with something else; its own endpoint has the rest. */
export function beginningOf<T extends z.ZodType>(item: T) {
  return z.object({
    data: z.array(item).meta({ description: 'the oldest of them' }),
    hasMore: z.boolean().meta({ description: 'there are more, which their own list has', examples: [false] }),
  });
}

/** One page of `item`s. */
export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({ data: z.array(item).meta({ description: 'the items of this page' }), pagination: pageInfo });
}
