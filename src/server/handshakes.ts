// Handshakes of TLS in turn: each takes the thread about a millisecond, so that many at once would hold up everything
// else. Connections beyond a few wait, and those beyond many are closed. No address has all turns, or all places to
// wait, so that one whose handshakes hang holds up itself alone.
import type { Socket } from 'node:net';
import type { Server, TLSSocket } from 'node:tls';

interface HandshakeLimits {
  /** Handshakes under way at once. */
  readonly atOnce: number;
  /** Connections that wait for theirs. */
  readonly waiting: number;
  /** The same from one address. */
  readonly atOnceOfAddress: number;
  readonly waitingOfAddress: number;
  /** Milliseconds that a connection may wait for its handshake. */
  readonly patience: number;
  /** Milliseconds after which a handshake that is not done counts no more: its client is silent, or far away. */
  readonly turn: number;
}

const usualLimits: HandshakeLimits = {
  atOnce: 16,
  waiting: 1024,
  atOnceOfAddress: 8,
  waitingOfAddress: 512,
  patience: 10_000,
  turn: 1000,
};

export class HandshakeQueue {
  readonly #server: Server;
  readonly #limits: HandshakeLimits;
  readonly #waiting = new Map<Socket, string>();
  /** Ends of turns, by peer. */
  readonly #ends = new Map<string, () => void>();
  readonly #underWay = new Counts();
  readonly #waitingOf = new Counts();

  /** @param server its connections are handed to it by `take`, and by nothing else. */
  constructor(server: Server, limits: HandshakeLimits = usualLimits) {
    this.#server = server;
    this.#limits = limits;
  }

  /** Takes a new connection, whose handshake begins when it is its turn. */
  take(socket: Socket): void {
    const address = socket.remoteAddress ?? '';
    const { waiting, waitingOfAddress, patience } = this.#limits;
    socket.on('error', () => socket.destroy());
    if (this.#hasTurn(address)) {
      this.#begin(socket, address);
      return;
    }
    if (this.#waiting.size >= waiting || this.#waitingOf.of(address) >= waitingOfAddress) {
      socket.destroy();
      return;
    }
    this.#waiting.set(socket, address);
    this.#waitingOf.add(address, 1);
    const late = setTimeout(() => socket.destroy(), patience).unref();
    socket.once('close', () => {
      clearTimeout(late);
      this.#leave(socket, address);
    });
  }

  #hasTurn(address: string): boolean {
    const { atOnce, atOnceOfAddress } = this.#limits;
    return this.#underWay.total < atOnce && this.#underWay.of(address) < atOnceOfAddress;
  }

  #leave(socket: Socket, address: string): void {
    if (this.#waiting.delete(socket)) this.#waitingOf.add(address, -1);
  }

  #begin(socket: Socket, address: string): void {
    this.#underWay.add(address, 1);
    let isUnderWay = true;
    const late = setTimeout(() => end(), this.#limits.turn).unref();
    const end = (): void => {
      if (!isUnderWay) return;
      isUnderWay = false;
      clearTimeout(late);
      this.#underWay.add(address, -1);
      // In another turn of the event loop, so that others are served in between.
      setImmediate(() => this.#next());
    };
    const peer = peerOf(socket);
    socket.once('close', () => {
      this.#ends.delete(peer);
      end();
    });
    this.#ends.set(peer, end);
    this.#server.emit('connection', socket);
  }

  /** Begins the handshake of the first that waits and may have a turn. */
  #next(): void {
    for (const [socket, address] of this.#waiting) {
      if (!this.#hasTurn(address)) continue;
      this.#leave(socket, address);
      if (socket.destroyed) continue;
      this.#begin(socket, address);
      return;
    }
  }

  /** Ends the turn of a connection whose handshake is done. */
  done(socket: TLSSocket): void {
    this.#ends.get(peerOf(socket))?.();
  }
}

/** The other end, which a connection and the one within it in TLS have in common. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** Numbers by address, and their sum. */
class Counts {
  readonly #numbers = new Map<string, number>();
  total = 0;

  of(address: string): number {
    return this.#numbers.get(address) ?? 0;
  }

  add(address: string, change: 1 | -1): void {
    const number = this.of(address) + change;
    this.total += change;
    if (number > 0) this.#numbers.set(address, number);
    else this.#numbers.delete(address);
  }
}
