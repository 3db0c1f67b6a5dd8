// A user who approves what real clients wait for: made on an appliance that is served, with an app that shows codes.
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { CodeApp, type Send, sendTo } from '../support/code-app.ts';

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

/** Sends to an address with a certificate of its own, for which the global fetch has no option. */
function sendTls(url: string, cert: string): Send {
  return (path, body, token) =>
    new Promise((resolve, reject) => {
      const headers = {
        'content-type': 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      };
      const options = { method: 'POST', headers, ca: readFileSync(cert), servername: 'localhost' };
      const sent = request(url + path, options, (answer) => {
        const read = text(answer).then((said) => {
          if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode} ${said}`);
          return JSON.parse(said);
        });
        read.then(resolve, reject);
      });
      sent.once('error', reject).end(JSON.stringify(body));
    });
}

/** A user who can approve, for rules to name. */
export async function newApprover({ url, cert, kms }: ApproverPlace): Promise<Approver> {
  const name = `approver-${++approvers}`;
  const person = ['--email', `${name}@x.example`, '--first-name', 'A', '--last-name', 'B', '--json'];
  const { password } = JSON.parse(await kms('user', 'create', name, ...person));
  const send = cert === undefined ? sendTo(url) : sendTls(url, cert);
  const app = await CodeApp.setUp(send, name, password);
  return {
    name,
    async approve(id) {
      await send(`/approvals/requests/${id}/approve`, { code: await app.code() }, app.token);
    },
  };
}
