// The answers of a standby until it takes over: health, its lag, and for the administrator at the machine the command
// to take over. All other requests are refused.
import { type LocalId, localEndpoints } from '../api/local-endpoints.ts';
import { localCaller } from '../core/credential.ts';
import { KmsError, reasonOf } from '../errors.ts';
import { defaultBodyLimit, tooLarge } from '../http/body.ts';
import { checkParts } from '../http/input.ts';
import type { ApiRequest } from '../http/request.ts';
import type { Answer } from '../http/request-log.ts';
import { answered, type Outcome, refused } from '../http/respond.ts';
import { epochTimeOf } from '../model/timestamp.ts';
import { version } from '../version.ts';
import type { Standby } from './standby.ts';

const message = 'this is a standby: it serves no client until it takes over';

/** Default time in milliseconds that the former primary gets to stop. */
const usualWait = 10_000;

/** @param begin opens the appliance after the takeover. */
export function standbyAnswers(standby: Standby, begin: () => Promise<unknown>): Answer {
  let takingOver: Promise<Outcome> | undefined;
  const promote = async (request: ApiRequest): Promise<Outcome> => {
    const { wait = usualWait, fence = true, acceptOlder = false } = await bodyOf(request);
    const taken = await standby.takeOver({ wait, fence, acceptOlder });
    await begin();
    return answered(taken);
  };
  const local = async (request: ApiRequest): Promise<Outcome | undefined> => {
    const { method, path } = request;
    if (path === '/local/status') return answered({ version, sealed: true, standby: standby.status() });
    if (path !== '/local/standby/promote' || method !== 'POST') return undefined;
    if (takingOver) return refused(new KmsError('conflict', 'it is taking over already; wait for it'));
    takingOver = promote(request)
      .catch((error: unknown) => refused(answerable(error)))
      .finally(() => {
        takingOver = undefined;
      });
    return takingOver;
  };
  return async (request) => ({
    outcome: publicAnswer(standby, request) ?? (request.local ? await local(request) : undefined) ?? notServing,
  });
}

const notServing: Outcome = { status: 503, body: { message }, headers: { 'Retry-After': '5' } };

/** Unauthenticated clients of Tang get no answer. */
function publicAnswer(standby: Standby, { path, surface }: ApiRequest): Outcome | undefined {
  if (surface === 'tang') return undefined;
  if (path === '/healthz') return answered({ status: 'ok' });
  if (path === '/readyz') return { status: 503, body: { message, standby: distance(standby) } };
  if (path === '/metrics')
    return { ...answered({}), content: metricsOf(standby), headers: { 'Content-Type': textType } };
  // Before the takeover it is unknown whether it would be sealed.
  return path === '/system/seal-status' ? { status: 404, body: { message } } : undefined;
}

/** A failed takeover is not a defect: the caller gets the reason. */
function answerable(error: unknown): unknown {
  if (!(error instanceof KmsError) || error.code === 'sealed') return error;
  const { message: what, hint } = error;
  return new KmsError('conflict', hint === undefined ? what : `${what}; ${hint}`, { cause: error });
}

async function bodyOf({ body }: ApiRequest): Promise<{ wait?: number; fence?: boolean; acceptOlder?: boolean }> {
  const id: LocalId = 'promoteStandby';
  const endpoint = localEndpoints.find((each) => each.id === id);
  if (!endpoint) throw new KmsError('internal', `${id} is not declared`);
  const bytes = await body.read(defaultBodyLimit, localCaller.id);
  if (!bytes) throw tooLarge(defaultBodyLimit);
  const value = parsed(new TextDecoder().decode(bytes));
  const checked = checkParts(endpoint, { params: {}, query: {}, body: { value, inexact: [] } });
  if (checked.error) throw checked.error;
  // Cast: just validated against the declaration.
  return (checked.input as { body: { wait?: number; fence?: boolean; acceptOlder?: boolean } }).body;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new KmsError('invalid', `the body is not JSON: ${reasonOf(error)}`);
  }
}

/** Public, so without paths, and without reasons that contain paths. */
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
