// The budget of bytes that bodies share, on their way in and while they are worked on, and a request's body under it:
// read when the app asks for it, and let go of where the answer goes out without it, so that the client gets that
// answer however much it still sends.
import { IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { KmsError } from '../errors.ts';
import { brokenBody } from '../http/body.ts';
import type { BodySource } from '../http/request.ts';

const MiB = 1024 * 1024;

export interface BodyLimits {
  /** Bytes of bodies, from which on those are refused whose sender needs no credential. */
  readonly waiting: number;
  /** From which on every other one is. */
  readonly waitingAtMost: number;
  /** Of one credential. */
  readonly ofOneHolder: number;
  /** What is read of a body that nobody wants: bytes, and milliseconds. */
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

/** A body that was declared no longer is let go of on a connection that goes on. */
const keptConnection = MiB;

/** Counts the bytes of bodies that come in more than one piece, until their requests are answered. */
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

  /** Whether there is room for so many more; they are counted then. */
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
 * A request whose body is gathered until somebody reads it, and handed over whole where all of it is there by then, as
 * it is of most: the buffer, the flow, the end and the closing of a Readable take more time than all else that is done
 * with it, and keep some hundred bytes for a piece of one. Whoever reads it as a stream gets it so.
 */
export class Incoming extends IncomingMessage {
  #gathered: Uint8Array | undefined;
  /** How much of that is the body's. */
  #length = 0;
  /** Pieces that it was gathered from. */
  #pieces = 0;
  #isTaken = false;
  /** No more is to come. */
  #isOver = false;
  /** While the request waits for its turn. */
  #onPiece: ((bytes: number) => void) | undefined;

  /** How many more pieces came than whoever reads it as a stream will see. */
  get joined(): number {
    return Math.max(0, this.#pieces - 1);
  }

  /** The body, once; undefined where not all of it was gathered, or it is read as a stream. */
  takeWhole(): Uint8Array | undefined {
    const gathered = this.#gathered;
    if (!gathered || this.#length !== Number(this.headers['content-length'])) return undefined;
    this.letGo();
    return gathered.length === this.#length ? gathered : gathered.subarray(0, this.#length);
  }

  /** From now on the request waits for its turn, and `onPiece` is told of what is kept of it; undefined: no more. */
  wait(onPiece: ((bytes: number) => void) | undefined): void {
    this.#onPiece = onPiece;
  }

  /** Nobody reads what was gathered. */
  letGo(): void {
    if (this.#gathered) this.#isTaken = true;
    this.#gathered = undefined;
  }

  /** Node's parser calls it with each piece, and with null at the end. Answers whether there is room for more. */
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
      // A piece is a view of all that was read at once, which would be kept as long as the request waits.
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
    // Node looks once more at a request that was answered, which nobody reads.
    if (this.readableFlowing === null) return void this.letGo();
    this.#gathered = undefined;
    super.push(gathered.subarray(0, this.#length));
    if (this.#isOver) super.push(null);
  }

  static {
    // Node lets go of a request that has ended. It is an accessor there too, which Node's types say is a property.
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
  /** Bytes; undefined for one in chunks, whose length shows at its end. */
  readonly #declared: number | undefined;
  /** What was counted of the body, as long as the request is worked on. */
  #worked: { readonly bytes: number; readonly holder: string | undefined } | undefined;
  /** The client waits to be told that its body is wanted (RFC 9110 §10.1.1). */
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
    // What is worked on together takes its steps together: each waits here.
    if (whole) return Promise.resolve(whole);
    return new Promise((resolve, reject) => {
      let bytes = nothing;
      let length = 0;
      let pieces = incoming instanceof Incoming ? incoming.joined : 0;
      let counted = 0;
      let isDone = false;

      // Listeners stay, since to take them off costs as much as to put them on: what comes later is nobody's.
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
        // Most come in one piece, which waits for nothing.
        if (after === declared && length === 0) bytes = chunk;
        else {
          const room = bytes.length;
          const wanted = after <= room ? room : Math.min(declared ?? limit, Math.max(after, room * 2, leastRoom));
          // One array that grows: pieces of a byte each would take many times their length.
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
      // The HTTP parser holds a body to the length that it was declared with.
      if (!declared) incoming.on('end', onEnd);
    });
  }

  /** To be called once the request is worked on no more. */
  done(): void {
    if (this.#worked) this.#budget.give(this.#worked.bytes, this.#worked.holder);
    this.#worked = undefined;
  }

  /**
   * To be called at once when no more is wanted, before the head of the answer is written. What is still to come is
   * read and thrown away, up to a bound: a connection that is closed with bytes unread is reset, and the answer may be
   * lost with it (RFC 9112 §9.6).
   */
  letGo(): void {
    const incoming = this.#incoming;
    const outgoing = this.#outgoing;
    if (incoming instanceof Incoming && incoming.complete) incoming.letGo();
    if (incoming.complete || incoming.destroyed || this.#declared === 0 || this.#isLetGo) return;
    this.#isLetGo = true;
    // A client that was not told to send may or may not: the connection cannot go on.
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
    // At its end a stream of Node's closes by itself.
    incoming.resume();
  }
}

/**
 * From now on the end of the last answer closes one direction only; the function that comes back closes the other, and
 * both after it.
 */
function closeInTwoSteps(socket: Socket): () => void {
  let isHalfClosed = false;
  socket.destroySoon = () => {
    isHalfClosed = true;
    socket.end();
  };
  return () => {
    // What the prototype has counts again.
    Reflect.deleteProperty(socket, 'destroySoon');
    if (isHalfClosed) socket.destroySoon();
  };
}

const leastRoom = 4096;
const nothing: Uint8Array = new Uint8Array(0);

/**
 * So many small pieces a body may come in, and so many are thrown away: a chunk of one byte costs a thousand times what
 * the byte does.
 */
const fewPieces = 4096;
const manyPieces = 16_384;

/** Seconds. */
const soon = 5;

function tooManyWait(): KmsError {
  return new KmsError('unavailable', 'too many requests wait for the rest of their bodies; try again', {
    retryAfter: soon,
  });
}
