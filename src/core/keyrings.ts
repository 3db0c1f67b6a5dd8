// The keyrings of the key service: create, list, get.
import type { Page, PageRequest } from '../store/sql.ts';
import type { Context } from './context.ts';
import type { JsonObject } from './json.ts';
import { type Key, type KeyRing, keyRing, ksKey } from './keyring-wire.ts';
import { mapPage } from './pages.ts';
import { findRing, type RingRef } from './ring-lookup.ts';
import { makeRing } from './ring-making.ts';

export interface CreateKeyringInput {
  readonly name: string;
  readonly algo?: 'aes256';
  readonly publicKey?: string;
  readonly props?: JsonObject;
  readonly keyProps?: JsonObject;
}

export interface CreatedKeyring {
  readonly ring: KeyRing;
  readonly key: Key;
  /** Only when no public key was given; returned once, never stored. */
  readonly privateKey?: string;
}

export async function createKeyring(ctx: Context, input: CreateKeyringInput): Promise<CreatedKeyring> {
  const { ring, key, privateKey } = await makeRing(ctx, 'ks', input);
  const answer = { ring: keyRing(ring), key: ksKey(key) };
  return privateKey === undefined ? answer : { ...answer, privateKey };
}

/** The oldest first. */
export async function listKeyrings({ tx }: Context, input: { readonly page: PageRequest }): Promise<Page<KeyRing>> {
  return mapPage(await tx.rings.list('ks', input.page), keyRing);
}

export async function getKeyring({ tx }: Context, input: { readonly ring: RingRef }): Promise<{ ring: KeyRing }> {
  return { ring: keyRing(await findRing(tx, 'ks', input.ring)) };
}
