// People who approve, with an app that shows codes.
import assert from 'node:assert/strict';
import { verifyExport } from '../../src/appliance/verify-export.ts';
import { addTotp, type Person, person } from '../http/samples.ts';
import type { AnyJson, Appliance } from './appliance.ts';
import { appCode } from './authenticator.ts';

const minute = 60_000;

export interface Approver extends Person {
  readonly secret: string;
}

export async function approver(a: Appliance, flags: Record<string, boolean> = {}): Promise<Approver> {
  const one = await person(a, flags);
  const { secret } = await addTotp(a, one);
  a.advance(minute);
  return { ...one, secret };
}

export const code = (a: Appliance, { secret }: Approver): string => appCode(secret, a.world.now());

/** Says a word, with a code that was not used yet. */
export function say(a: Appliance, who: Approver, id: string, verdict = 'approve') {
  a.advance(minute / 2);
  return a.call('POST', `/approvals/requests/${id}/${verdict}`, { code: code(a, who) }, { key: who.key });
}

export const ids = (...people: readonly Person[]): string[] => people.map(({ user }) => user.id);

/** The id of the request that an answer names. */
export function waits({ status, body }: { status: number; body: AnyJson }, given = 0): string {
  assert.equal(status, 403, JSON.stringify(body));
  assert.equal(body.approval?.given, given, JSON.stringify(body));
  return body.approval.id;
}

/** The approvals that an export of the activity log proves. */
export async function proven(a: Appliance) {
  const headers = { authorization: `Bearer ${a.root.key}`, 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body: '{}' };
  const { body } = await a.app.fetch(new Request('http://kms.test/auth/activity/export', init), {});
  assert.ok(body);
  const { broken, approvals } = await verifyExport(body);
  assert.equal(broken?.problem, undefined);
  return approvals ?? assert.fail('nothing was approved');
}
