// API keys as they are answered: safe, without the secret, and whole, once.
import { type ApiKey, flagsOfRow } from '../store/tables/api-keys.ts';
import type { JsonObject } from './json.ts';
import { timestamp } from './time.ts';

export interface SafeApiKey {
  readonly keyid: string;
  readonly active: boolean;
  readonly references: { readonly accountId: string };
  readonly flags: JsonObject;
  readonly props: JsonObject;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface FullApiKey extends SafeApiKey {
  /** The secret; answered when the key is made and never again. */
  readonly key: string;
}

export function safeApiKey(key: Omit<ApiKey, 'seq'>): SafeApiKey {
  return {
    keyid: key.id,
    active: key.active,
    references: { accountId: key.accountId },
    flags: flagsOfRow(key),
    props: key.props,
    createdAt: timestamp(key.createdAt),
    updatedAt: timestamp(key.updatedAt),
  };
}
