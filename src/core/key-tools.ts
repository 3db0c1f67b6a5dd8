// Random bytes and hashes, for software that takes them from where its keys are. No key has a part in them.
import type { Answer, Body } from '../api/endpoints.ts';
import { toBase64 } from '../crypto/bytes.ts';
import { plainDigest } from '../crypto/managed/digests.ts';
import type { Context } from './context.ts';
import { inputBytes } from './key-operations.ts';

export function generateRandom({ world }: Context, { bytes = 32 }: Body<'generateRandom'>): Answer<'generateRandom'> {
  return { random: toBase64(world.random(bytes)) };
}

export function hashMessage(
  _ctx: Context,
  { input = '', hash = 'sha2-256' }: Body<'hashMessage'>,
): Answer<'hashMessage'> {
  return { hash: toBase64(plainDigest(hash, inputBytes(input))) };
}
