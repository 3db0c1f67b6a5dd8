// The configuration of a keyring: its props, what later keys get as props, and how many encrypts a key serves.
import { invalidField } from '../errors.ts';
import type { Ring } from '../store/tables/rings.ts';
import type { Context } from './context.ts';
import type { JsonObject } from './json.ts';
import { findRing } from './ring-lookup.ts';

export interface KeyringConfig {
  readonly props: JsonObject;
  readonly key: { readonly props: JsonObject };
  readonly algos: { readonly aes256: { readonly maxEncryptCount: number } };
}

/** What it names is replaced whole, the rest is kept. */
export interface KeyringConfigChange {
  readonly props?: JsonObject;
  readonly key?: { readonly props?: JsonObject };
  readonly algos?: { readonly aes256?: { readonly maxEncryptCount?: number } };
}

export async function getConfig(
  { tx }: Context,
  input: { readonly ringname: string },
): Promise<{ config: KeyringConfig }> {
  return { config: configOf(await findRing(tx, 'ks', { name: input.ringname })) };
}

export async function putConfig(
  { tx, world }: Context,
  input: { readonly ringname: string; readonly config: KeyringConfigChange },
): Promise<{ config: KeyringConfig }> {
  const { props, key, algos } = input.config;
  const maxEncryptCount = algos?.aes256?.maxEncryptCount;
  if (maxEncryptCount !== undefined && (!Number.isSafeInteger(maxEncryptCount) || maxEncryptCount < 1)) {
    throw invalidField('config.algos.aes256.maxEncryptCount', 'expected an integer of at least 1');
  }
  const ring = await findRing(tx, 'ks', { name: input.ringname });
  const change = {
    props: props ?? ring.props,
    keyProps: key?.props ?? ring.keyProps,
    maxEncryptCount: maxEncryptCount ?? ring.maxEncryptCount,
    updatedAt: world.now(),
  };
  await tx.rings.update(ring.id, change);
  return { config: configOf(change) };
}

function configOf(ring: Pick<Ring, 'props' | 'keyProps' | 'maxEncryptCount'>): KeyringConfig {
  return {
    props: ring.props,
    key: { props: ring.keyProps },
    algos: { aes256: { maxEncryptCount: ring.maxEncryptCount } },
  };
}
