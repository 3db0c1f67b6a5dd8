// Costly work with managed keys on threads of its own, so that no request waits behind an RSA key of somebody else.
// Callers take turns at the threads, and a long batch gives its turn away after every part.
import type { MessagePort, Worker } from 'node:worker_threads';
import { isDerivation, type Ordered, runKeyJob, type WorkResult, wipeHeld } from '../../crypto/managed/key-work.ts';
import { generateKey, isRsaType, type ManagedKeyType } from '../../crypto/managed/keys.ts';
import { generateRsaKey } from '../../crypto/managed/rsa-keys.ts';
import { systemRandom } from '../../crypto/random.ts';
import { KmsError } from '../../errors.ts';
import { requestThread, serveRequests } from './requests.ts';

type Answered = { readonly value: unknown } | { readonly code: KmsError['code']; readonly problem: string };

/** Turns at something scarce, as a fair queue gives them. */
interface Turns {
  enter(tenant: string, callerOf: () => string): Promise<void> | undefined;
  leave(): void;
}

/** The thread as seen by those who have work done. */
interface KeyThread {
  run(
    orders: readonly Ordered[],
    from: { readonly tenant: string; readonly caller: string; readonly isGone?: (() => boolean) | undefined },
  ): Promise<readonly WorkResult[]>;
  close(): Promise<void>;
}

interface KeyWorkerOptions {
  /** Starts a thread that runs `serveKeyWork`. Called if there is work and no thread. */
  start(): Worker;
  readonly turns: Turns;
}

/** Orders that are done in one turn: some 30 ms of RSA-2048. */
const partLength = 32;

/** Whether an order has a turn of its own: it may take a second and more. */
function isLong(order: Ordered): boolean {
  return isDerivation(order.name) || (order.name === 'generate' && isRsaType(order.type));
}

/** The orders in parts, in their order. */
function partsOf(orders: readonly Ordered[]): Ordered[][] {
  const parts: Ordered[][] = [];
  for (const order of orders) {
    const last = parts.at(-1);
    const [first] = last ?? [];
    if (!last || !first || isLong(order) || isLong(first) || last.length >= partLength) parts.push([order]);
    else last.push(order);
  }
  return parts;
}

export function keyWorker({ start, turns }: KeyWorkerOptions): KeyThread {
  const thread = requestThread<readonly Ordered[], readonly Answered[]>({
    start,
    most: 256,
    tooMany: 'too much work with keys at once; try again',
    lost: 'the work with the key was lost; try again',
  });

  async function inTurn(part: readonly Ordered[], tenant: string, caller: string): Promise<readonly Answered[]> {
    const turn = turns.enter(tenant, () => caller);
    if (turn) await turn;
    try {
      return await thread.ask(part);
    } finally {
      turns.leave();
    }
  }

  return {
    async run(orders, { tenant, caller, isGone }) {
      const results: WorkResult[] = [];
      for (const part of partsOf(orders)) {
        // The answer would reach no one.
        if (isGone?.()) throw new KmsError('unavailable', 'the client has gone');
        const answers = await inTurn(part, tenant, caller);
        results.push(...answers.map(resultOf));
      }
      return results;
    },
    close: () => thread.close(),
  };
}

function resultOf(answered: Answered): WorkResult {
  return 'value' in answered ? answered : { error: new KmsError(answered.code, answered.problem) };
}

/** The thread's side. */
export function serveKeyWork(port: MessagePort): void {
  serveRequests<readonly Ordered[], readonly Answered[]>(
    port,
    async (orders) => {
      const answers: Answered[] = [];
      for (const order of orders) answers.push(await answerTo(order));
      return answers;
    },
    'the work with a key failed',
  );
}

async function answerTo(order: Ordered): Promise<Answered> {
  try {
    if (order.name === 'generate') return { value: await newKey(order.type) };
    return { value: runKeyJob(order.name, order.input, systemRandom) };
  } catch (error) {
    if (error instanceof KmsError) return { code: error.code, problem: error.message };
    return { code: 'internal', problem: 'the work with a key failed' };
  } finally {
    if ('input' in order) wipeHeld(order.input);
  }
}

async function newKey(type: ManagedKeyType): Promise<Uint8Array> {
  return isRsaType(type) ? generateRsaKey(type) : generateKey(type, systemRandom);
}
