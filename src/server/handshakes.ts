// Handshakes of TLS in turn: each takes the thread about a millisecond, so that many at once would hold up everything
// else. Connections beyond a few wait, and those beyond many are closed. The address with the fewest turns comes first,
// and that with the most waiting connections loses one, so that addresses whose handshakes hang hold up themselves
// alone.
import type { Socket } from 'node:net';
import type { Server, TLSSocket } from 'node:tls';
import { networksOf } from '../model/addresses.ts';

interface HandshakeLimits {
  /** Handshakes under way at once. */
  readonly atOnce: number;
  /** Connections that wait for theirs. */
  readonly waiting: number;
  /** The same from one address, or one /64 of IPv6. */
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
  /** By host, the longest waiting first. */
  readonly #waiting = new Map<string, Set<Socket>>();
  /** Ends of turns, by peer. */
  readonly #ends = new Map<string, () => void>();
  readonly #underWay = new Counts();
  #waitingCount = 0;

  /** @param server its connections are handed to it by `take`, and by nothing else. */
  constructor(server: Server, limits: HandshakeLimits = usualLimits) {
    this.#server = server;
    this.#limits = limits;
  }

  /** Takes a new connection, whose handshake begins when it is its turn. */
  take(socket: Socket): void {
    const host = networksOf(socket.remoteAddress ?? '').host;
    const { waiting, waitingOfAddress, patience } = this.#limits;
    socket.on('error', () => socket.destroy());
    if (this.#hasTurn(host)) {
      this.#begin(socket, host);
      return;
    }
    const own = this.#waiting.get(host) ?? new Set();
    if (own.size >= waitingOfAddress || (this.#waitingCount >= waiting && !this.#makeRoom(own.size))) {
      socket.destroy();
      return;
    }
    this.#waiting.set(host, own.add(socket));
    this.#waitingCount++;
    const late = setTimeout(() => socket.destroy(), patience).unref();
    socket.once('close', () => {
      clearTimeout(late);
      this.#leave(socket, host);
    });
  }

  /** Closes a connection of the host with the most, if those are more than a newcomer's host has. */
  #makeRoom(most: number): boolean {
    const [host, sockets] = [...this.#waiting].reduce((one, other) => (other[1].size > one[1].size ? other : one));
    const [last] = [...sockets].slice(-1);
    if (!last || sockets.size <= most + 1) return false;
    this.#leave(last, host);
    last.destroy();
    return true;
  }

  #hasTurn(host: string): boolean {
    const { atOnce, atOnceOfAddress } = this.#limits;
    return this.#underWay.total < atOnce && this.#underWay.of(host) < atOnceOfAddress;
  }

  #leave(socket: Socket, host: string): void {
    const sockets = this.#waiting.get(host);
    if (!sockets?.delete(socket)) return;
    this.#waitingCount--;
    if (sockets.size === 0) this.#waiting.delete(host);
  }

  #begin(socket: Socket, host: string): void {
    this.#underWay.add(host, 1);
    let isUnderWay = true;
    const late = setTimeout(() => end(), this.#limits.turn).unref();
    const end = (): void => {
      if (!isUnderWay) return;
      isUnderWay = false;
      clearTimeout(late);
      this.#underWay.add(host, -1);
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

  /** Begins the handshake of the first that waits of the host with the fewest turns. */
  #next(): void {
    const hosts = [...this.#waiting.keys()].toSorted((one, other) => this.#underWay.of(one) - this.#underWay.of(other));
    for (const host of hosts) {
      if (!this.#hasTurn(host)) return;
      for (const socket of this.#waiting.get(host) ?? []) {
        this.#leave(socket, host);
        if (socket.destroyed) continue;
        this.#begin(socket, host);
        return;
      }
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

/** Numbers by host, and their sum. */
class Counts {
  readonly #numbers = new Map<string, number>();
  total = 0;

  of(host: string): number {
    return this.#numbers.get(host) ?? 0;
  }

  add(host: string, change: 1 | -1): void {
    const number = this.of(host) + change;
    this.total += change;
    if (number > 0) this.#numbers.set(host, number);
    else this.#numbers.delete(host);
  }
}
