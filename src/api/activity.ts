// The activity log: its records and how it is searched.
import { z } from 'zod';
import { epochTime, freeForm, id, requiredText } from './values.ts';

export const activity = z.object({
  id,
  keyid: id,
  createdAt: epochTime,
  props: freeForm,
  action: z.string(),
  ringname: z.string(),
  validAction: z.boolean().meta({ description: 'the verdict of authorization' }),
  status: z.int().meta({ description: 'the HTTP status that came of it' }),
});
export type Activity = z.output<typeof activity>;

/** All given filters must hold. */
export const searchActivityBody = z.object({
  accountUid: requiredText.exactOptional(),
  accountId: requiredText.exactOptional(),
  action: requiredText.exactOptional(),
  ring: requiredText.exactOptional(),
  start: epochTime.exactOptional(),
  end: epochTime.exactOptional(),
  keyid: requiredText.exactOptional(),
  valid: z.boolean().exactOptional(),
  props: freeForm.exactOptional(),
});
