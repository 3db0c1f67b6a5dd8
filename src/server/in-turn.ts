// Pipelined requests of a connection, in their order: each is handled once those before it are answered, waiting ones
// are counted, and unreadable bytes after them are refused last. It also batches the requests of all connections by
// turn of the event loop.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { BodyBudget, Incoming, usualBodyLimits } from './body-budget.ts';

/** Bytes of pipelined requests, of one connection and of all. Connections that exceed them are cut. */
const aheadOfOne = 1024 * 1024;
const aheadOfAll = 64 * aheadOfOne;

/** Overhead charged per request and per header name or value, in bytes. */
const ofRequest = 3072;
const ofText = 24;

/** Memory of a request without its body: 2 kB with few headers, 44 kB with 900. */
function sizeOfHead({ url = '', rawHeaders }: IncomingMessage): number {
  return rawHeaders.reduce((bytes, text) => bytes + ofText + text.length, ofRequest + url.length);
}

/** The budget of pipelined requests, by connection. */
export function aheadBudget(): BodyBudget {
  return new BodyBudget({ ...usualBodyLimits, waitingAtMost: aheadOfAll, ofOneHolder: aheadOfOne });
}

/** The latest response of each connection. */
const newest = new WeakMap<Duplex, ServerResponse>();

/** Bytes that a connection has pipelined, under a budget. */
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

  /** Take nothing for a closed socket: its `close` handler has run and will not give it back. */
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
 * A pipelined request (RFC 9112 §9.3.2) is handled once the answer before it has been sent: otherwise a connection
 * could have any number of answers made and read none.
 */
export function oneByOne(handle: Handle, begin: Begin, budget: BodyBudget): RequestListener {
  const connections = new WeakMap<Duplex, Ahead>();
  return (incoming, outgoing) => {
    const { socket } = incoming;
    newest.set(socket, outgoing);
    // Node assigns the socket to a response once those before it have been sent.
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

/** Decides when a request is worked on. */
type Begin = (go: () => void) => void;

export type Handle = (incoming: IncomingMessage, outgoing: ServerResponse, begin: Begin) => void;

export const atOnce: Begin = (go) => go();

/** Requests received in this turn of the event loop, in order. */
const come: (() => void)[] = [];

/**
 * Requests received in one turn of the event loop are worked on together once all are read: one step for each, then the
 * next. If each was read, parsed and worked on in turn, an encrypt would take up to twice as much processor time, most
 * likely because each step has to be loaded into the processor's caches again (docs/performance.md).
 */
export function together(go: () => void): void {
  if (come.push(go) === 1) setImmediate(goOn);
}

function goOn(): void {
  for (const go of come.splice(0)) go();
}

/**
 * Refuses bad bytes behind whole requests only after those are answered. A request that breaks off midway gets the
 * refusal once the answers ahead of it are sent, unless its own answer has begun: that stays the only one.
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
