// The bodies of errors.
import { z } from 'zod';

export const errorBody = z
  .object({
    message: z.string().meta({
      description: 'what is wrong, in one sentence for people; never a secret',
      examples: ['name: is required'],
    }),
    errors: z
      .record(z.string(), z.string())
      .exactOptional()
      .meta({ description: 'what is wrong, by field', examples: [{ name: 'is required' }] }),
  })
  .meta({ id: 'Error', description: 'why a request was refused' });
export type ErrorBody = z.output<typeof errorBody>;

export const emptyBody = z.object({}).meta({ id: 'Empty', description: 'an empty object' });
export const messageBody = z
  .object({ message: z.string().meta({ description: 'what was done', examples: ['done'] }) })
  .meta({ id: 'Message', description: 'what was done, in one sentence' });
