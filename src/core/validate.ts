// Telling another service whether an API key is one of this tenant and active, and recording what it did there.
import { hashSecret, isWellFormedApiKey } from '../crypto/api-key.ts';
import type { Context } from './context.ts';
import type { JsonObject } from './json.ts';

export interface ValidateInput {
  /** The secret. */
  readonly key: string;
  readonly activity?: {
    readonly action?: string;
    /** Not looked at: the record is the validated key's. */
    readonly apikeyId?: string;
    readonly createdAt?: number;
    readonly props?: JsonObject;
    readonly ringname?: string;
    readonly validAction?: boolean;
  };
}

/** A record is kept only for a key that there is. */
export async function validateApiKey({ tx, world }: Context, input: ValidateInput): Promise<{ valid: boolean }> {
  const key = isWellFormedApiKey(input.key) ? await tx.apiKeys.credential(hashSecret(input.key)) : undefined;
  const valid = key?.active ?? false;
  if (key && input.activity) {
    const { action, createdAt, props, ringname, validAction } = input.activity;
    tx.record({
      id: world.newId('act'),
      createdAt: createdAt ?? world.now(),
      keyid: key.id,
      action: action ?? 'apikey.validate',
      ringname: ringname?.toLowerCase() ?? '',
      validAction: validAction ?? valid,
      status: 200,
      props: props ?? {},
    });
  }
  return { valid };
}
