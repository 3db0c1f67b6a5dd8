// The memory budget of request bodies, while they are received and worked on, and a request's body under it: read when
// the app asks for it, and discarded if the answer needs none of it, so that the client gets that answer however much
// it still sends.
import { IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { KmsError } from '../errors.ts';
import { brokenBody } from '../http/body.ts';
import type { BodySource } from '../http/request.ts';

const MiB = 1024 * 1024;

export interface BodyLimits {
  /** Total bytes of bodies beyond which those that need no credential are refused. */
  readonly waiting: number;
  /** Total bytes beyond which all others are refused too. */
  readonly waitingAtMost: number;
  /** Bytes held for one credential. */
  readonly ofOneHolder: number;
  /** Limits of an unwanted body that is read and discarded: bytes, and milliseconds. */
  readonly unwanted: number;
  readonly unwantedFor: number;
}

export const usualBodyLimits: BodyLimits = {
  waiting: 64 * MiB,
  waitingAtMost: 256 * MiB,
  ofOneHolder: 64 * MiB,
  unwanted: 16 * MiB,
  unwantedFor: 10_000,
};

/** The connection is kept after discarding a body if its declared length is at most this. */
const keptConnection = MiB;

/** Counts the bytes of bodies that come in several pieces, until their requests are answered. */
export class BodyBudget {
  readonly limits: BodyLimits;
  readonly #holders = new Map<string, number>();
  #waiting = 0;

  constructor(limits: BodyLimits = usualBodyLimits) {
    this.limits = limits;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Counts this many more bytes, if there is room; says whether there was. */
  take(bytes: number, holder: string | undefined): boolean {
    const { waiting, waitingAtMost, ofOneHolder } = this.limits;
    const held = holder === undefined ? 0 : (this.#holders.get(holder) ?? 0) + bytes;
    const after = this.#waiting + bytes;
    if (after > (holder === undefined ? waiting : waitingAtMost) || held > ofOneHolder) return false;
    this.#waiting = after;
    if (holder !== undefined) this.#holders.set(holder, held);
    return true;
  }

  give(bytes: number, holder: string | undefined): void {
    this.#waiting -= bytes;
    if (holder === undefined) return;
    const left = (this.#holders.get(holder) ?? 0) - bytes;
    if (left > 0) this.#holders.set(holder, left);
    else this.#holders.delete(holder);
  }
}

/**
 * A request that gathers its body until it is read, and hands it over at once if it is complete by then, as most are. A
 * Readable's buffering, flow and end take more time than the rest of the request, and some hundred bytes even for a
 * one-piece body. Reading it as a stream works too.
 */
export class Incoming extends IncomingMessage {
  #gathered: Uint8Array | undefined;
  /** Bytes of `#gathered` that are the body's. */
  #length = 0;
  /** Number of pieces gathered. */
  #pieces = 0;
  #isTaken = false;
  /** The body has ended. */
  #isOver = false;
  /** Set while the request waits for its turn. */
  #onPiece: ((bytes: number) => void) | undefined;

  /** Pieces hidden by the gathering from a reader of the stream. */
  get joined(): number {
    return Math.max(0, this.#pieces - 1);
  }

  /** The whole body, once; undefined if it is not complete, or is read as a stream. */
  takeWhole(): Uint8Array | undefined {
    const gathered = this.#gathered;
    if (!gathered || this.#length !== Number(this.headers['content-length'])) return undefined;
    this.letGo();
    return gathered.length === this.#length ? gathered : gathered.subarray(0, this.#length);
  }

  /** From now on the request waits for its turn, and `onPiece` gets the bytes kept for it; undefined ends this. */
  wait(onPiece: ((bytes: number) => void) | undefined): void {
    this.#onPiece = onPiece;
  }

  /** Discards the gathered bytes. */
  letGo(): void {
    if (this.#gathered) this.#isTaken = true;
    this.#gathered = undefined;
  }

  /** Called by Node's parser with each piece, and with null at the end. Returns whether there is room for more. */
  override push(chunk: Uint8Array | null, encoding?: BufferEncoding): boolean {
    if (this.#isTaken) return true;
    if (!this.#gathered && (!chunk || this.readableFlowing !== null)) return super.push(chunk, encoding);
    if (chunk) this.#gather(chunk);
    else this.#isOver = true;
    return this.#length < this.readableHighWaterMark;
  }

  #gather(chunk: Uint8Array): void {
    const before = this.#length;
    this.#length += chunk.length;
    this.#pieces++;
    this.#onPiece?.(chunk.length);
    if (!this.#gathered) {
      // Copy: a piece is a view of all bytes of one read, which would be kept as long as the request waits.
      this.#gathered = this.#onPiece ? new Uint8Array(chunk) : chunk;
      return;
    }
    if (this.#length > this.#gathered.length) {
      const grown = new Uint8Array(Math.max(this.#length, 2 * before, leastRoom));
      grown.set(this.#gathered.subarray(0, before));
      this.#gathered = grown;
    }
    this.#gathered.set(chunk, before);
  }

  override _read(size: number): void {
    super._read(size);
    const gathered = this.#gathered;
    if (!gathered) return;
    // Node reads once more from an answered request, whose body is not wanted.
    if (this.readableFlowing === null) return void this.letGo();
    this.#gathered = undefined;
    super.push(gathered.subarray(0, this.#length));
    if (this.#isOver) super.push(null);
  }

  static {
    // Node's HTTP server drops a request once it has ended. An accessor on the prototype too, though Node's types
    // declare a property.
    const { get } = Object.getOwnPropertyDescriptor(Readable.prototype, 'readableEnded') ?? {};
    Object.defineProperty(Incoming.prototype, 'readableEnded', {
      get(this: Incoming) {
        return this.#isTaken || get?.call(this);
      },
    });
  }
}

export class RequestBody implements BodySource {
  readonly #incoming: IncomingMessage;
  readonly #outgoing: ServerResponse;
  readonly #budget: BodyBudget;
  /** Bytes; undefined for a chunked body, whose length shows at its end. */
  readonly #declared: number | undefined;
  /** Bytes counted for the body while the request is worked on. */
  #worked: { readonly bytes: number; readonly holder: string | undefined } | undefined;
  #released: { readonly bytes: number; readonly holder: string | undefined } | undefined;
  /** The client waits for 100 Continue before it sends the body (RFC 9110 §10.1.1). */
  #isHeldBack: boolean;
  #isLetGo = false;

  constructor(incoming: IncomingMessage, outgoing: ServerResponse, budget: BodyBudget) {
    const { headers } = incoming;
    this.#incoming = incoming;
    this.#outgoing = outgoing;
    this.#budget = budget;
    this.#declared = headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : undefined;
    this.#isHeldBack = headers.expect !== undefined && incoming.httpVersionMinor > 0;
  }

  read(limit: number, holder: string | undefined): Promise<Uint8Array | undefined> {
    const incoming = this.#incoming;
    const budget = this.#budget;
    const declared = this.#declared;
    if (this.#isHeldBack) this.#outgoing.writeContinue();
    this.#isHeldBack = false;
    const whole = incoming instanceof Incoming && Number(declared) <= limit ? incoming.takeWhole() : undefined;
    // A promise all the same: requests that are worked on together go one step at a time.
    if (whole) return Promise.resolve(whole);
    return new Promise((resolve, reject) => {
      let bytes = nothing;
      let length = 0;
      let pieces = incoming instanceof Incoming ? incoming.joined : 0;
      let counted = 0;
      let isDone = false;

      // The listeners stay, since removing them costs as much as adding them; they ignore later events.
      const end = (): void => {
        isDone = true;
        budget.give(counted, holder);
        bytes = nothing;
      };
      const onEnd = (): void => {
        if (isDone) return;
        isDone = true;
        this.#worked = { bytes: counted, holder };
        const whole = bytes.length === length ? bytes : bytes.subarray(0, length);
        bytes = nothing;
        resolve(whole);
      };
      const onBroken = (): void => {
        if (isDone) return;
        end();
        reject(brokenBody());
      };
      const onData = (chunk: Uint8Array): void => {
        if (isDone) return;
        const after = length + chunk.length;
        if (after > limit) {
          end();
          resolve(undefined);
          this.letGo();
          return;
        }
        if (++pieces > fewPieces + after / 64) {
          end();
          reject(new KmsError('invalid', 'the body comes in too many pieces'));
          this.letGo();
          return;
        }
        // Most bodies come in one piece, which needs no copy.
        if (after === declared && length === 0) bytes = chunk;
        else {
          const room = bytes.length;
          const wanted = after <= room ? room : Math.min(declared ?? limit, Math.max(after, room * 2, leastRoom));
          // One growing array: a list of one-byte pieces would take many times their length.
          if (wanted > room) {
            if (!budget.take(wanted - room, holder)) {
              end();
              reject(tooManyWait());
              this.letGo();
              return;
            }
            counted += wanted - room;
            const grown = new Uint8Array(wanted);
            grown.set(bytes.subarray(0, length));
            bytes = grown;
          }
          bytes.set(chunk, length);
        }
        length = after;
        if (after === declared) onEnd();
      };

      if (incoming.readableEnded) return onEnd();
      if (incoming.destroyed) return onBroken();
      incoming.on('data', onData).on('close', onBroken);
      // With a declared length, the HTTP parser holds the body to it.
      if (!declared) incoming.on('end', onEnd);
    });
  }

  release(): void {
    this.#released = this.#worked;
    this.done();
  }

  reclaim(): void {
    const released = this.#released;
    if (!released) return;
    if (!this.#budget.take(released.bytes, released.holder)) throw tooManyWait();
    this.#worked = released;
    this.#released = undefined;
  }

  /** Call this once the request is no longer worked on. */
  done(): void {
    if (this.#worked) this.#budget.give(this.#worked.bytes, this.#worked.holder);
    this.#worked = undefined;
  }

  /**
   * Call this as soon as no more of the body is wanted, before the head of the answer is written. The rest is read and
   * discarded, up to a bound: closing a connection with unread bytes resets it, and the answer may be lost (RFC 9112
   * §9.6).
   */
  letGo(): void {
    const incoming = this.#incoming;
    const outgoing = this.#outgoing;
    if (incoming instanceof Incoming && incoming.complete) incoming.letGo();
    if (incoming.complete || incoming.destroyed || this.#declared === 0 || this.#isLetGo) return;
    this.#isLetGo = true;
    // A client that got no 100 Continue may or may not send its body, so the connection cannot be kept.
    if (this.#isHeldBack || this.#declared === undefined || this.#declared > keptConnection) {
      outgoing.setHeader('Connection', 'close');
    }
    const { socket } = incoming;
    const { unwanted, unwantedFor } = this.#budget.limits;
    const closeFully = closeInTwoSteps(socket);
    const timer = setTimeout(() => socket.destroy(), unwantedFor);
    timer.unref();
    let thrownAway = 0;
    let pieces = 0;
    incoming.on('data', (chunk: Uint8Array) => {
      thrownAway += chunk.length;
      if (thrownAway > unwanted || ++pieces > manyPieces + thrownAway / 64) socket.destroy();
    });
    incoming.once('close', () => {
      clearTimeout(timer);
      closeFully();
    });
    // Node closes a stream itself when it has ended.
    incoming.resume();
  }
}

/**
 * From now on the end of the last answer closes only the sending side. The returned function closes the other side, at
 * once or when that answer has ended.
 */
function closeInTwoSteps(socket: Socket): () => void {
  let isHalfClosed = false;
  socket.destroySoon = () => {
    isHalfClosed = true;
    socket.end();
  };
  return () => {
    // Restores the method of the prototype.
    Reflect.deleteProperty(socket, 'destroySoon');
    if (isHalfClosed) socket.destroySoon();
  };
}

const leastRoom = 4096;
const nothing: Uint8Array = new Uint8Array(0);

/**
 * Limits on the number of small pieces of a body that is read, and of one that is discarded: a chunk of one byte costs
 * a thousand times as much as the byte.
 */
const fewPieces = 4096;
const manyPieces = 16_384;

/** In seconds. */
const soon = 5;

function tooManyWait(): KmsError {
  return new KmsError('unavailable', 'too many requests wait for the rest of their bodies; try again', {
    retryAfter: soon,
  });
}
