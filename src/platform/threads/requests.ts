// A thread that answers requests, one at a time: started by the first, ended when it is closed, with a bounded queue.
import type { MessagePort, Worker } from 'node:worker_threads';
import { type ErrorCode, KmsError } from '../../errors.ts';
import { endThread, takeOrders } from './ending.ts';

type Numbered<Work> = { readonly id: number; readonly work: Work };
type Numbering<Value> = { readonly id: number } & (
  | { readonly value: Value }
  | { readonly code: ErrorCode; readonly problem: string }
);

interface Waiting<Value> {
  resolve(value: Value): void;
  reject(error: KmsError): void;
}

interface ThreadOptions {
  /** Starts a thread that runs `serveRequests`. Called if there is work and no thread. */
  start(): Worker;
  /** Limit of pending requests; further ones are refused. */
  readonly most: number;
  /** Why a request is refused beyond the limit, and why one is lost with its thread. */
  readonly tooMany: string;
  readonly lost: string;
}

interface RequestThread<Work, Value> {
  ask(work: Work): Promise<Value>;
  /** Ends the thread; pending requests are refused. */
  close(): Promise<void>;
}

export function requestThread<Work, Value>({ start, most, tooMany, lost }: ThreadOptions): RequestThread<Work, Value> {
  const waiting = new Map<number, Waiting<Value>>();
  let worker: Worker | undefined;
  let lastId = 0;
  let closed = false;

  function running(): Worker {
    if (worker) return worker;
    const started = start();
    started.on('message', (answer: Numbering<Value>) => settle(started, answer));
    // A thread that dies loses its requests; the next request starts another.
    started.on('error', () => gone(started));
    started.on('exit', () => gone(started));
    worker = started;
    return started;
  }

  function settle(from: Worker, answer: Numbering<Value>): void {
    const request = waiting.get(answer.id);
    waiting.delete(answer.id);
    if (waiting.size === 0) from.unref();
    if ('value' in answer) request?.resolve(answer.value);
    else request?.reject(new KmsError(answer.code, answer.problem));
  }

  function gone(dead: Worker): void {
    if (worker !== dead) return;
    worker = undefined;
    for (const { reject } of waiting.values()) reject(unavailable(lost));
    waiting.clear();
  }

  return {
    ask(work) {
      if (closed) return Promise.reject(unavailable('the server is stopping'));
      if (waiting.size >= most) return Promise.reject(unavailable(tooMany));
      const id = ++lastId;
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject });
        const to = running();
        // An idle thread does not keep the process alive; a pending request does.
        to.ref();
        to.postMessage({ id, work } satisfies Numbered<Work>);
      });
    },
    async close() {
      closed = true;
      const last = worker;
      if (!last) return;
      gone(last);
      await endThread(last);
    },
  };
}

function unavailable(message: string): KmsError {
  return new KmsError('unavailable', message, { retryAfter: 1 });
}

/** The thread's side. `failed` says what to answer if `work` throws something that is no error of the product. */
export function serveRequests<Work, Value>(
  port: MessagePort,
  work: (work: Work) => Value | Promise<Value>,
  failed: string,
): void {
  takeOrders<Numbered<Work>>(port, ({ id, work: given }) => void answer(id, given));

  async function answer(id: number, given: Work): Promise<void> {
    try {
      port.postMessage({ id, value: await work(given) });
    } catch (error) {
      const known = error instanceof KmsError ? error : new KmsError('corrupt', failed);
      port.postMessage({ id, code: known.code, problem: known.message });
    }
  }
}
