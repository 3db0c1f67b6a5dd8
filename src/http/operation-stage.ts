// The stage of a request that does the operation in a savepoint of the transaction: it is taken back if it fails, if
// there is no room for its answer, or if it needs approval.
import type { Endpoint } from '../api/endpoint.ts';
import { KmsError } from '../errors.ts';
import type { Slices } from '../store/sql.ts';
import type { Admission } from './admission.ts';
import { encodeAnswer } from './answer.ts';
import { approve, approveTry, lookFor, waitFor } from './approval-stage.ts';
import type { EndpointInput } from './input.ts';
import type { OperationContext } from './operation-context.ts';
import type { PlainOperation, PlainSlices } from './plain-route.ts';
import { type Outcome, refused } from './respond.ts';

export const changedMeanwhile = new KmsError('unavailable', 'the credential changed meanwhile; try again');

/** @param admission absent at a public endpoint. */
export function operate(
  input: EndpointInput,
  ctx: OperationContext,
  operation: PlainOperation | undefined,
  admission?: Admission,
): Outcome {
  const { endpoint, problem } = input;
  if (problem) return refused(problem, endpoint.silent400);
  try {
    input.needShown(ctx.tx);
    if (!operation) throw changedMeanwhile;
    const before = admission && lookFor(ctx, endpoint, input, admission);
    return ctx.tx.savepoint(() => {
      const given = operation(ctx, input);
      if (admission && before && ctx.isTry) approveTry(ctx, endpoint, input, admission, before);
      const outcome = encode(input, ctx, given);
      if (admission && before) approve(ctx, endpoint, input, admission, before);
      return outcome;
    });
  } catch (error) {
    return takenBack(endpoint, ctx, error);
  }
}

/** `operate` for an operation in slices. */
export function* operateInSlices(
  input: EndpointInput,
  ctx: OperationContext,
  { slices }: PlainSlices,
  admission: Admission,
): Slices<Outcome> {
  const { endpoint, problem } = input;
  if (problem) return refused(problem, endpoint.silent400);
  try {
    input.needShown(ctx.tx);
    const before = lookFor(ctx, endpoint, input, admission);
    return yield* ctx.tx.savepointInSlices(function* () {
      const given = yield* slices(ctx, input);
      if (before && ctx.isTry) approveTry(ctx, endpoint, input, admission, before);
      const outcome = encode(input, ctx, given);
      if (before) approve(ctx, endpoint, input, admission, before);
      return outcome;
    });
  } catch (error) {
    return takenBack(endpoint, ctx, error);
  }
}

/** The outcome of an operation that was rolled back. */
function takenBack(endpoint: Endpoint, ctx: OperationContext, error: unknown): Outcome {
  ctx.dropStream();
  try {
    const waiting = waitFor(ctx, error);
    if (waiting) return waiting;
    ctx.failed(error);
    return refused(error, endpoint.silent400);
  } catch (limit) {
    ctx.failed(limit);
    return refused(limit);
  }
}

function encode(input: EndpointInput, ctx: OperationContext, given: unknown): Outcome {
  const { watchable } = input.endpoint;
  if (!watchable || !ctx.watch) return encodeAnswer(input, ctx, given);
  const { headers, isKnown } = ctx.watch.match(given, watchable.apart);
  if (isKnown) return { status: 304, body: {}, content: null, headers };
  const outcome = encodeAnswer(input, ctx, given);
  return { ...outcome, headers: { ...outcome.headers, ...headers } };
}
