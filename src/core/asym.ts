// The asym service: rings of its own, whose private key is always made here and answered once.
import type { Context } from './context.ts';
import type { JsonObject } from './json.ts';
import { findKey } from './keyring-keys.ts';
import { type AsymKey, type AsymKeyRing, asymKey, asymKeyRing } from './keyring-wire.ts';
import { findRing, type RingRef } from './ring-lookup.ts';
import { makeRing, rotateRing } from './ring-making.ts';

export interface CreateAsymKeyringInput {
  readonly name: string;
  readonly algo?: 'aes256';
  readonly props?: JsonObject;
  readonly keyProps?: JsonObject;
}

export interface CreatedAsymKeyring {
  readonly ring: AsymKeyRing;
  readonly key: AsymKey;
  /** Base64 PKCS#8 DER. */
  readonly privateKey: string;
}

export async function createAsymKeyring(ctx: Context, input: CreateAsymKeyringInput): Promise<CreatedAsymKeyring> {
  const { name, props, keyProps } = input;
  const made = await makeRing(ctx, 'asym', { name, props: props ?? {}, keyProps: keyProps ?? {} });
  return { ring: asymKeyRing(made.ring), key: asymKey(made.key), privateKey: made.privateKey ?? '' };
}

export async function getAsymKey(
  ctx: Context,
  input: { readonly ring: RingRef; readonly keyId: string },
): Promise<AsymKey> {
  return asymKey(await findKey(ctx, 'asym', input));
}

export async function rotateAsymKeyring(
  ctx: Context,
  input: { readonly ringname: string; readonly algo?: 'aes256' },
): Promise<{ key: AsymKey }> {
  const ring = await findRing(ctx.tx, 'asym', { name: input.ringname });
  return { key: asymKey(await rotateRing(ctx, ring)) };
}
