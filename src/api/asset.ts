// Assets: stored records with free-form data and parents, which headers carry signed.
import { z } from 'zod';
import { epochTime, freeForm, id, requiredText, timestamp } from './values.ts';

export const asset = z.object({ id, createdAt: timestamp, data: freeForm, parents: z.array(id) });
export type Asset = z.output<typeof asset>;

/** What decrypt says of the asset in a header. */
export const signedAsset = z.object({ valid: z.boolean(), id, message: z.string(), data: freeForm });

/** All given filters must hold. */
export const searchAssetsBody = z.object({
  apikeyId: requiredText.exactOptional(),
  accountId: requiredText.exactOptional(),
  keyringId: requiredText.exactOptional(),
  parents: z.array(requiredText).exactOptional(),
  start: epochTime.exactOptional(),
  end: epochTime.exactOptional(),
  data: freeForm.exactOptional(),
});
