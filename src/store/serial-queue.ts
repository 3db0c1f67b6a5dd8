// A serial queue: jobs run one after the other, in the order in which they came; one that finds none before it runs at
// once. However many come together, they don't keep others from the event loop: what all queues did for a while is
// followed by a rest.
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Milliseconds of processor time that the queues run before the next job waits for a rest. */
const longestGo = 20;
/**
 * In turns of the event loop: it takes one connection in each, and each costs some microseconds where nothing waits.
 */
const restTurns = 32;

/**
 * When the first job of this turn of the event loop began, by the clock and by the thread's processor time; undefined
 * while none did.
 */
let began: { readonly at: number; readonly cpu: NodeJS.CpuUsage } | undefined;
let resting: Promise<void> | undefined;

function isLong(): boolean {
  // The clock is quicker to ask, but runs on while others have the processor.
  if (began === undefined || performance.now() - began.at <= longestGo) return false;
  const { user, system } = process.threadCpuUsage(began.cpu);
  return (user + system) / 1000 > longestGo;
}

function rest(): Promise<void> {
  resting ??= (async () => {
    for (let turn = 0; turn < restTurns; turn++) await nextTurn();
    resting = undefined;
    began = undefined;
  })();
  return resting;
}

function begin(): void {
  if (began !== undefined) return;
  began = { at: performance.now(), cpu: process.threadCpuUsage() };
  setImmediate(() => {
    if (isLong()) void rest();
    else if (!resting) began = undefined;
  });
}

export class SerialQueue {
  readonly #waiting: (() => Promise<void>)[] = [];
  #busy = false;
  #working: Promise<void> | undefined;

  /** `job` must not fail. */
  add(job: () => Promise<void>): void {
    this.#waiting.push(job);
    if (this.#busy) return;
    this.#busy = true;
    this.#working = this.#work();
  }

  /** Answers what `job` does. Its failure is the caller's alone: the next one runs all the same. */
  run<R>(job: () => Promise<R>): Promise<R> {
    return new Promise((resolve, reject) => this.add(() => job().then(resolve, reject)));
  }

  /** Resolves when all that came before is done. */
  async idle(): Promise<void> {
    await this.#working;
  }

  async #work(): Promise<void> {
    for (let job = this.#waiting.shift(); job; job = this.#waiting.shift()) {
      while (isLong()) await rest();
      begin();
      await job();
    }
    this.#busy = false;
  }
}
