// What a standby answers until it takes over: that it lives, how far it is behind, and to the administrator at the
// machine the command that has it take over. Everything else is told that nobody is served here.
import { type LocalId, localEndpoints } from '../../api/local.ts';
import { KmsError, reasonOf } from '../../errors.ts';
import { checkParts } from '../../http/input.ts';
import type { RequestEnv } from '../../http/request.ts';
import { refused, respond } from '../../http/respond.ts';
import { epochTimeOf } from '../../model/timestamp.ts';
import { version } from '../../version.ts';
import type { Standby } from './standby.ts';

type Answers = (request: Request, env: RequestEnv) => Response | Promise<Response>;

const message = 'this is a standby: it serves nobody until it takes over';

/** How long the one that it takes over from is given to stop, unless that is said, in milliseconds. */
const usualWait = 10_000;

/** `begin` opens the appliance that it took over. */
export function standbyAnswers(standby: Standby, begin: () => Promise<unknown>): Answers {
  let takingOver: Promise<Response> | undefined;
  const promote = async (request: Request): Promise<Response> => {
    const { wait = usualWait, fence = true, acceptOlder = false } = await bodyOf(request);
    const taken = await standby.takeOver({ wait, fence, acceptOlder });
    await begin();
    return Response.json(taken);
  };
  const local = (request: Request, path: string): Promise<Response> | Response | undefined => {
    if (path === '/local/status') return Response.json({ version, sealed: true, standby: standby.status() });
    if (path !== '/local/standby/promote' || request.method !== 'POST') return undefined;
    if (takingOver) return respond(refused(new KmsError('conflict', 'it is taking over already; wait for it')));
    takingOver = promote(request)
      .catch((error: unknown) => respond(refused(answerable(error))))
      .finally(() => {
        takingOver = undefined;
      });
    return takingOver;
  };
  return (request: Request, env: RequestEnv) => {
    // Clients of Tang, who are anybody, are told nothing else.
    const path = env.tang ? '' : new URL(request.url).pathname;
    if (path === '/healthz') return Response.json({ status: 'ok' });
    if (path === '/readyz') return Response.json({ message, standby: distance(standby) }, { status: 503 });
    if (path === '/metrics') return new Response(metricsOf(standby), { headers: { 'Content-Type': textType } });
    // Whether it would be sealed is not known before it takes over.
    if (path === '/system/seal-status') return Response.json({ message }, { status: 404 });
    const answer = env.local ? local(request, path) : undefined;
    return answer ?? Response.json({ message }, { status: 503, headers: { 'Retry-After': '5' } });
  };
}

/** What could not be done is no defect: it is told to whoever asked. */
function answerable(error: unknown): unknown {
  if (!(error instanceof KmsError) || error.code === 'sealed') return error;
  const { message: what, hint } = error;
  return new KmsError('conflict', hint === undefined ? what : `${what}; ${hint}`, { cause: error });
}

async function bodyOf(request: Request): Promise<{ wait?: number; fence?: boolean; acceptOlder?: boolean }> {
  const id: LocalId = 'promoteStandby';
  const endpoint = localEndpoints.find((each) => each.id === id);
  if (!endpoint) throw new KmsError('internal', `${id} is not declared`);
  const value: unknown = await request.json().catch((error: unknown) => {
    throw new KmsError('invalid', `the body is no JSON: ${reasonOf(error)}`);
  });
  const checked = checkParts(endpoint, { params: {}, query: {}, body: { value, inexact: [] } });
  if (checked.error) throw checked.error;
  // Cast: the declaration has just been compared with it.
  return (checked.input as { body: { wait?: number; fence?: boolean; acceptOlder?: boolean } }).body;
}

/** For everybody: no paths, and no reasons with paths in them. */
function distance(standby: Standby): object {
  const { appliance, epoch, behind, shipped, proven, problem } = standby.status();
  return {
    appliance,
    epoch,
    behind,
    shippedAt: shipped?.at ?? null,
    provenAt: proven?.at ?? null,
    ok: isWell(problem),
  };
}

function isWell(problem: string | undefined): boolean {
  return problem === undefined;
}

const textType = 'text/plain; version=0.0.4; charset=utf-8';

function metricsOf(standby: Standby): string {
  const { behind, shipped, proven, problem } = standby.status();
  const seconds = (at: string | undefined): number | undefined =>
    at === undefined ? undefined : epochTimeOf(at) / 1000;
  const gauges: readonly (readonly [string, string, number | undefined])[] = [
    ['kms_standby_ok', 'whether the last look at what is shipped went well', isWell(problem) ? 1 : 0],
    ['kms_standby_behind_transactions', 'transactions that are shipped and not here', behind?.transactions],
    ['kms_standby_behind_seconds', 'seconds between what is shipped and what is here', behind?.seconds],
    ['kms_standby_shipped_timestamp_seconds', 'of which time the newest shipped state is', seconds(shipped?.at)],
    ['kms_standby_proven_timestamp_seconds', 'of which time the newest proven state is', seconds(proven?.at)],
  ];
  return gauges
    .filter(([, , value]) => value !== undefined)
    .map(([name, help, value]) => `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${name} ${value}\n`)
    .join('');
}
