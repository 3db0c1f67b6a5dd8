// The requests of a connection in their order: one is looked at when those before it have their answers, what waits for
// that is counted, and what cannot be read behind them is refused after them. And when those of all connections are
// worked on.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { BodyBudget, Incoming, usualBodyLimits } from './body-budget.ts';

/** Bytes of what was sent ahead of its turn, of one connection and of all. Beyond them connections end. */
const aheadOfOne = 1024 * 1024;
const aheadOfAll = 64 * aheadOfOne;

/** As how many bytes a request counts besides what was sent, and each name and value in its head. */
const ofRequest = 3072;
const ofText = 24;

/** What a request takes without its body: 2 kB with few headers, 44 with 900. */
function sizeOfHead({ url = '', rawHeaders }: IncomingMessage): number {
  return rawHeaders.reduce((bytes, text) => bytes + ofText + text.length, ofRequest + url.length);
}

/** For the requests that are sent ahead of their turn, by connections. */
export function aheadBudget(): BodyBudget {
  return new BodyBudget({ ...usualBodyLimits, waitingAtMost: aheadOfAll, ofOneHolder: aheadOfOne });
}

/** The answer to the newest request of a connection. */
const newest = new WeakMap<Duplex, ServerResponse>();

/** What a connection sent ahead, under a budget. */
class Ahead {
  static #made = 0;
  readonly #connection = String(Ahead.#made++);
  readonly #socket: Duplex;
  readonly #budget: BodyBudget;
  #bytes = 0;

  constructor(socket: Duplex, budget: BodyBudget) {
    this.#socket = socket;
    this.#budget = budget;
    socket.once('close', () => this.give(this.#bytes));
  }

  /** Of a connection that is over nothing is taken: nobody would give it back. */
  take(bytes: number): boolean {
    const isTaken = !this.#socket.destroyed && this.#budget.take(bytes, this.#connection);
    if (isTaken) this.#bytes += bytes;
    return isTaken;
  }

  give(bytes: number): void {
    const held = Math.min(bytes, this.#bytes);
    this.#bytes -= held;
    this.#budget.give(held, this.#connection);
  }
}

/**
 * A request that was sent before the one ahead of it was answered (RFC 9112 §9.3.2) is looked at when that answer has
 * gone out: else a connection could have any number of answers made and read none.
 */
export function oneByOne(handle: Handle, begin: Begin, budget: BodyBudget): RequestListener {
  const connections = new WeakMap<Duplex, Ahead>();
  return (incoming, outgoing) => {
    const { socket } = incoming;
    newest.set(socket, outgoing);
    // Node gives a response its socket when those before it have gone out.
    if (outgoing.socket) return handle(incoming, outgoing, begin);
    const ahead = connections.get(socket) ?? new Ahead(socket, budget);
    connections.set(socket, ahead);
    let held = 0;
    const hold = (bytes: number): void => {
      if (ahead.take(bytes)) held += bytes;
      else socket.destroy();
    };
    hold(sizeOfHead(incoming));
    if (incoming instanceof Incoming) incoming.wait(hold);
    outgoing.once('socket', () => {
      if (incoming instanceof Incoming) incoming.wait(undefined);
      ahead.give(held);
      process.nextTick(handle, incoming, outgoing, atOnce);
    });
  };
}

/** When a request is worked on. */
type Begin = (go: () => void) => void;

export type Handle = (incoming: IncomingMessage, outgoing: ServerResponse, begin: Begin) => void;

export const atOnce: Begin = (go) => go();

/** Requests that came in this turn of the event loop, in their order. */
const come: (() => void)[] = [];

/**
 * What came in one turn of the event loop is worked on together once all of it is read: one step for each, then the
 * next. Where each is read, parsed and worked on before the next is looked at, an encrypt takes up to twice as much
 * processor time, most likely since each step has to come into the processor's caches anew (docs/performance.md).
 */
export function together(go: () => void): void {
  if (come.push(go) === 1) setImmediate(goOn);
}

function goOn(): void {
  for (const go of come.splice(0)) go();
}

/**
 * What is wrong behind whole requests does not cost them their answers: it is told once those have gone out. Of a
 * request that breaks off there is no answer to wait for, but of those ahead of it; one that has begun stays the only
 * one.
 */
export function afterAnswers(socket: Duplex, refuse: () => void): void {
  const last = newest.get(socket);
  const refuseIfOpen = (): void => {
    if (socket.writable) refuse();
  };
  const end = (): void => void socket.end(() => socket.destroy());
  const isOver = last?.writableFinished || last?.destroyed;
  if (!last || (isOver && last.req.complete)) refuse();
  else if (last.req.complete) last.once('close', refuseIfOpen);
  else if (last.headersSent) isOver ? end() : last.once('close', end);
  else if (last.socket || isOver) refuse();
  else last.prependOnceListener('socket', refuseIfOpen);
}
