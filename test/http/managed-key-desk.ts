// Requests about managed keys as tests make them: an answer that must be good, one that must be refused, a new key.
import assert from 'node:assert/strict';
import type { AnyJson, Appliance } from '../support/appliance.ts';
import { freshName } from './samples.ts';

export const day = 24 * 60 * 60 * 1000;
export const base64 = (text: string): string => Buffer.from(text).toString('base64');

export async function ok(answer: Promise<{ status: number; body: AnyJson }>): Promise<AnyJson> {
  const { status, body } = await answer;
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

export async function refused(
  answer: Promise<{ status: number; body: AnyJson }>,
  status: number,
  message: RegExp,
): Promise<void> {
  const got = await answer;
  assert.equal(got.status, status, JSON.stringify(got.body));
  assert.match(got.body.message, message);
}

export const make = async (a: Appliance, more: object = {}): Promise<AnyJson> =>
  (await ok(a.call('POST', '/managed-keys', { name: freshName(), ...more }))).key;
