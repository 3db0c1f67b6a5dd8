// Handshakes of TLS in turn: each takes the thread about a millisecond, so that many at once would hold up everything
// else. Connections beyond a few wait, and those beyond many are closed.
import type { Socket } from 'node:net';
import type { Server, TLSSocket } from 'node:tls';

interface HandshakeLimits {
  /** Handshakes under way at once. */
  readonly atOnce: number;
  /** Connections that wait for theirs. */
  readonly waiting: number;
  /** Milliseconds that a handshake may take, and a connection may wait for it. */
  readonly patience: number;
}

const usualLimits: HandshakeLimits = { atOnce: 16, waiting: 1024, patience: 10_000 };

export class HandshakeQueue {
  readonly #server: Server;
  readonly #limits: HandshakeLimits;
  readonly #waiting = new Set<Socket>();
  /** Ends of turns, by peer. */
  readonly #ends = new Map<string, () => void>();
  #underWay = 0;

  /** @param server its connections are handed to it by `take`, and by nothing else. */
  constructor(server: Server, limits: HandshakeLimits = usualLimits) {
    this.#server = server;
    this.#limits = limits;
  }

  /** Takes a new connection, whose handshake begins when it is its turn. */
  take(socket: Socket): void {
    socket.on('error', () => socket.destroy());
    if (this.#underWay < this.#limits.atOnce) {
      this.#begin(socket);
      return;
    }
    if (this.#waiting.size >= this.#limits.waiting) {
      socket.destroy();
      return;
    }
    this.#waiting.add(socket);
    const late = setTimeout(() => socket.destroy(), this.#limits.patience).unref();
    socket.once('close', () => {
      clearTimeout(late);
      this.#waiting.delete(socket);
    });
  }

  #begin(socket: Socket): void {
    this.#underWay++;
    let isUnderWay = true;
    const end = (): void => {
      if (!isUnderWay) return;
      isUnderWay = false;
      this.#underWay--;
      const [next] = this.#waiting;
      if (!next) return;
      this.#waiting.delete(next);
      // In another turn of the event loop, so that others are served in between.
      setImmediate(() => (next.destroyed ? undefined : this.#begin(next)));
    };
    const peer = peerOf(socket);
    socket.once('close', () => {
      this.#ends.delete(peer);
      end();
    });
    this.#ends.set(peer, end);
    this.#server.emit('connection', socket);
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
