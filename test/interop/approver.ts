// A user who approves what real clients wait for: made on an appliance that is served, with an app that shows codes.
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { appCode } from '../support/authenticator.ts';

interface ApproverPlace {
  /** URL of the native API. */
  readonly url: string;
  /** File of the certificate that it shows, if it speaks TLS. */
  readonly cert?: string;
  /** Runs `kms` as somebody who may do everything there; resolves to its stdout. */
  kms(...args: string[]): Promise<string>;
}

/** Milliseconds after which a request that did not come is missed. */
const patience = 30_000;
/** An app's code changes after as many milliseconds. */
const step = 30_000;

/**
 * Runs what a client does under a rule that holds it, approves it once it waits, and resolves once the client is done.
 * `action` is the flag that the act takes, wildcards allowed.
 */
export async function held<T>(place: ApproverPlace, action: string, act: () => Promise<T>): Promise<T> {
  const approver = await newApprover(place);
  const rule = ['--action', action, '--approver', approver.name, '--mode', 'hold'];
  await place.kms('approval', 'rule', 'create', `holds ${action}`, ...rule);
  let isDone = false;
  const done = act().finally(() => {
    isDone = true;
  });
  try {
    const id = await waiting(place, action);
    if (isDone) throw new Error(`${action} was done without approval`);
    await approver.approve(id);
  } catch (error) {
    await done.catch(() => undefined);
    throw error;
  }
  return await done;
}

/** The id of the request for this act, once it waits. */
async function waiting({ kms }: ApproverPlace, action: string): Promise<string> {
  const asked = new RegExp(
    `^${action
      .split('*')
      .map((part) => part.replaceAll('.', '\\.'))
      .join('.+')}$`,
  );
  for (const end = Date.now() + patience; Date.now() < end; await delay(200)) {
    const { requests } = JSON.parse(await kms('approval', 'list', '--state', 'pending', '--json'));
    const found = requests.find((each: { action: string }) => asked.test(each.action));
    if (found) return found.id;
  }
  throw new Error(`nothing waited for approval of ${action}`);
}

interface Approver {
  readonly name: string;
  approve(id: string): Promise<void>;
}

let approvers = 0;

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** Sends JSON. The global fetch has no option for one's own authorities. */
async function post(place: ApproverPlace, path: string, body: object, token?: string): Promise<Answer> {
  const headers = {
    'content-type': 'application/json',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  const url = place.url + path;
  const { cert } = place;
  if (cert === undefined) {
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: answer.status, body: await answer.text() };
  }
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', headers, ca: readFileSync(cert), servername: 'localhost' };
    const sent = request(url, options, (answer) => {
      text(answer).then((said) => resolve({ status: answer.statusCode ?? 0, body: said }), reject);
    });
    sent.once('error', reject).end(JSON.stringify(body));
  });
}

async function newApprover(place: ApproverPlace): Promise<Approver> {
  const { kms } = place;
  const ask = async (path: string, sent: object, token?: string): Promise<Record<string, string>> => {
    const { status, body } = await post(place, path, sent, token);
    if (status !== 200) throw new Error(`${path}: ${status} ${body}`);
    return JSON.parse(body);
  };
  const name = `approver-${++approvers}`;
  const person = ['--email', `${name}@x.example`, '--first-name', 'A', '--last-name', 'B', '--json'];
  const { password } = JSON.parse(await kms('user', 'create', name, ...person));
  const { accessToken: token = '' } = await ask('/auth/basic/login', { username: name, password });
  const factors = '/auth/user/second-factors/totp';
  const { id: factor, secret = '' } = await ask(factors, { currentPassword: password, name: 'phone' }, token);
  await ask(`${factors}/finish`, { id: factor, code: appCode(secret, Date.now()) }, token);
  return {
    name,
    async approve(id) {
      // Each code works once; the next one is accepted as soon as the clocks could differ.
      const code = appCode(secret, Date.now() + step);
      await ask(`/approvals/requests/${id}/approve`, { code }, token);
    },
  };
}
