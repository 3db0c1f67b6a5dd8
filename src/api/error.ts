// The bodies of errors.
import { z } from 'zod';

export const errorBody = z.object({
  message: z.string(),
  errors: z.record(z.string(), z.string()).exactOptional().meta({ description: 'what is wrong, by field' }),
});
export type ErrorBody = z.output<typeof errorBody>;

export const emptyBody = z.object({});
export const messageBody = z.object({ message: z.string() });
