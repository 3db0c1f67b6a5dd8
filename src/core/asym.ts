// The asym service: rings of its own, whose private key is always made here and answered once.

import type { AsymKey } from '../api/asym.ts';
import type { Answer, Body } from '../api/endpoints.ts';
import type { Context } from './context.ts';
import { asymKey, asymKeyRing, findKey } from './keyrings.ts';
import { findRing, makeRing, type RingRef, rotateRing } from './rings.ts';

export async function createAsymKeyring(
  ctx: Context,
  input: Body<'createAsymKeyring'>,
): Promise<Answer<'createAsymKeyring'>> {
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
