// Pages of lists and searches: the query parameters that ask for one, and the form in which it comes.
import { z } from 'zod';

export const defaultLimit = 100;
export const maxLimit = 10_000;

/** The query parameters of every paginated endpoint. */
export const pageQuery = {
  cursor: z.string().exactOptional().meta({ description: 'nextCursor of the page before; absent for the first page' }),
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
    })
    .exactOptional(),
};

export const pageInfo = z.object({
  limit: z.int(),
  count: z.int(),
  hasMore: z.boolean(),
  nextCursor: z.string().exactOptional(),
});
export type PageInfo = z.output<typeof pageInfo>;

/** One page of `item`s. */
export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({ data: z.array(item), pagination: pageInfo });
}
