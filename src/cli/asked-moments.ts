// Moments that a command counts from now, such as `--expires 90d`. Each run would ask for another one, and so for
// another approval: a command that is run again takes the moment of the caller's open request for the same.
import { clientPaths } from '../api/paths.ts';
import { type AnswerTo, createClient } from '../client/client.ts';
import { isJsonObject, jsonOf } from '../model/json.ts';
import { tenantHeader } from '../model/names.ts';
import type { Cli } from './command.ts';
import { say } from './io.ts';
import type { Fetch } from './reason.ts';

type Asked = AnswerTo<'listApprovalRequests'>['requests'][number];

/** Milliseconds by which the clocks of a client and its appliance may differ. Another age is another act. */
const tolerance = (age: number): number => Math.min(300_000, age / 100);

/** Sends the moments of an open request instead of those that are counted from the ages of the command's options. */
export function withAskedMoments(cli: Cli, send: Fetch, baseUrl: string): Fetch {
  const { ages } = cli;
  if (ages.length === 0) return send;
  const isCounted = (value: number, from: number) => ages.some((age) => Math.abs(value - from - age) < tolerance(age));
  return async (request) => {
    const body = jsonOf(new TextDecoder().decode(await request.clone().arrayBuffer()));
    if (!isJsonObject(body) || !numbersIn(body).some((each) => isCounted(each, Date.now()))) return send(request);
    for (const asked of await openRequests(request, send, baseUrl)) {
      const isSame = (own: number, theirs: number) =>
        isCounted(own, Date.now()) && isCounted(theirs, asked.createdAt) && theirs > Date.now();
      const same = isFor(asked, request, baseUrl) ? asAsked(body, asked.shown.body, isSame) : undefined;
      if (same === undefined) continue;
      await say(cli.io, `the time is as counted when request ${asked.id} was made, which asks for the same`);
      return send(new Request(request, { body: JSON.stringify(same) }));
    }
    return send(request);
  };
}

function numbersIn(value: unknown): number[] {
  if (typeof value === 'number') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(numbersIn) : [];
}

/** The caller's own that may be joined, or are not used yet; none if they cannot be read: the command may need none. */
async function openRequests({ headers }: Request, send: Fetch, baseUrl: string): Promise<readonly Asked[]> {
  const fetch = (request: Request): Promise<Response> => {
    for (const name of ['authorization', tenantHeader]) {
      const value = headers.get(name);
      if (value !== null) request.headers.set(name, value);
    }
    return send(request);
  };
  const client = createClient({ baseUrl, fetch, retries: 0, timeout: Number.POSITIVE_INFINITY });
  const { requests } = await client.listApprovalRequests({ mine: 'true' }).catch(() => ({ requests: [] }));
  return requests.filter(({ state, uses }) => state === 'pending' || (state === 'granted' && uses === 0));
}

/** Whether the request asks for the same operation on the same object. */
function isFor({ operation, object, shown }: Asked, { method, url }: Request, baseUrl: string): boolean {
  const [asked, pattern = ''] = Object.entries(clientPaths).find(([id]) => id === operation)?.[1] ?? [];
  const ways = [object?.id, object?.name].map((name) =>
    pattern.replace(/\{(\w+)\}/g, (_, param: string) => {
      const value = String(shown.parameters[param]);
      return encodeURIComponent(value === object?.id && name !== undefined ? name : value);
    }),
  );
  const path = url.slice(baseUrl.length).replace(/\?.*/, '');
  return asked === method && ways.includes(path);
}

/** `body` with the moments of the body that was asked for; undefined if anything else differs, or is hidden there. */
function asAsked(body: unknown, asked: unknown, isSame: (own: number, asked: number) => boolean): unknown {
  if (typeof body === 'number' && typeof asked === 'number') {
    return body === asked || isSame(body, asked) ? asked : undefined;
  }
  if (typeof body !== 'object' || body === null || typeof asked !== 'object' || asked === null) {
    return body === asked ? body : undefined;
  }
  const entries = Object.entries(body);
  const theirs = new Map(Object.entries(asked));
  const same = entries.map(([name, value]) => [name, asAsked(value, theirs.get(name), isSame)] as const);
  if (entries.length !== theirs.size || same.some(([, value]) => value === undefined)) return undefined;
  return Array.isArray(body) ? same.map(([, value]) => value) : Object.fromEntries(same);
}
