// The listener for KMIP: messages in TTLV over TLS, always with a client certificate. Each message is a request to the
// app like any other; here it is found in the bytes, bounded before it is kept, and answered in order.
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { fingerprintOf } from '../dialects/kmip/clients.ts';
import {
  headProblem,
  kmipPath,
  messageLimits,
  unavailableMessage,
  unreadableMessage,
} from '../dialects/kmip/messages.ts';
import { headLength } from '../dialects/kmip/ttlv.ts';
import type { ApiRequest } from '../http/request.ts';
import type { Answer } from '../http/request-log.ts';
import { plainAddress } from '../model/addresses.ts';
import type { BodyBudget } from './body-budget.ts';
import { ClientCertificates } from './client-certificates.ts';
import { HandshakeQueue } from './handshakes.ts';
import { type Certificate, tlsOptions } from './http-server.ts';
import { Pieces } from './pieces.ts';

interface KmipLimits {
  /** Bytes of a message before one has been answered, and after. */
  readonly firstMessage: number;
  readonly message: number;
  /** Milliseconds for the rest of a message that has begun, and between two messages. */
  readonly begun: number;
  readonly idle: number;
  /** Milliseconds until a client is known by a proof or a credential, and messages that it may send until then. */
  readonly stranger: number;
  readonly strangerMessages: number;
  /** Connections from one address whose clients are not known, or not yet. */
  readonly strangersOfAddress: number;
  readonly handshake: number;
  readonly connections: number;
  /** Connections with one certificate. */
  readonly ofOneClient: number;
}

const usualLimits: KmipLimits = {
  firstMessage: 128 * 1024,
  message: messageLimits.bytes,
  begun: 10_000,
  idle: 600_000,
  stranger: 10_000,
  strangerMessages: 16,
  strangersOfAddress: 256,
  handshake: 10_000,
  connections: 8192,
  ofOneClient: 64,
};

interface ConnectionLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface KmipOptions {
  readonly tls: Certificate;
  /** Whether suites that old appliances need are offered: RSA key exchange, and CBC. */
  readonly oldCiphers: boolean;
  readonly bodies: BodyBudget;
  readonly logger: ConnectionLog;
  readonly limits?: Partial<KmipLimits>;
}

export interface KmipListener {
  readonly server: Server;
  replace(certificate: Certificate): void;
  /** Stops accepting, lets messages under way be answered, and closes what is left after the grace. */
  end(grace?: number): Promise<void>;
}

/** Milliseconds that messages under way may take after the shutdown begins. */
const usualGrace = 15_000;

export function kmipListener(answer: Answer, options: KmipOptions): KmipListener {
  const { tls, oldCiphers, logger } = options;
  const limits = { ...usualLimits, ...options.limits };
  const certificates = new ClientCertificates(() => true);
  const open = new Set<Connection>();
  const sockets = new Set<Socket>();
  const clients = new ConnectionCounts(limits.ofOneClient);
  const strangers = new ConnectionCounts(limits.strangersOfAddress);
  const secure = createTlsServer({
    ...tlsOptions(tls, oldCiphers),
    requestCert: true,
    // Which is trusted is decided for each message.
    rejectUnauthorized: false,
    handshakeTimeout: limits.handshake,
    // The same in each process, so that sessions are resumed.
    sessionIdContext: 'kmip',
  });
  const handshakes = new HandshakeQueue(secure);
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    handshakes.take(socket);
  });
  server.maxConnections = limits.connections;
  // Connections that end before the handshake does are no news: some clients look whether anybody is there.
  secure.on('tlsClientError', (_error, socket) => socket.destroy());
  secure.on('secureConnection', (socket) => {
    handshakes.done(socket);
    socket.on('error', () => socket.destroy());
    const certificate = certificates.of(socket);
    const address = plainAddress(socket.remoteAddress ?? '');
    if (!certificate) {
      logger.info({ address }, 'KMIP: a client without a certificate was refused');
      socket.destroy();
      return;
    }
    const client = fingerprintOf(certificate);
    const origin = address ?? '';
    if (!strangers.take(origin)) {
      logger.warn({ address }, 'KMIP: too many connections from one address whose clients are not known');
      socket.destroy();
      return;
    }
    let isStranger = true;
    const noStranger = (): void => {
      if (isStranger) strangers.give(origin);
      isStranger = false;
    };
    socket.once('close', noStranger);
    if (!clients.take(client)) {
      logger.warn({ address, certificate: client }, 'KMIP: a client has too many connections');
      socket.destroy();
      return;
    }
    const connection = new Connection(
      socket,
      { answer, bodies: options.bodies, logger, limits, onKnown: noStranger },
      { certificate, address },
    );
    open.add(connection);
    socket.once('close', () => {
      open.delete(connection);
      clients.give(client);
    });
  });
  return {
    server,
    replace: (certificate) => secure.setSecureContext(tlsOptions(certificate, oldCiphers)),
    async end(grace = usualGrace) {
      if (!server.listening) return;
      const ended = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const connection of open) connection.finish();
      const cut = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, grace);
      await ended;
      clearTimeout(cut);
    },
  };
}

/** How many connections each client or address has. */
class ConnectionCounts {
  readonly #most: number;
  readonly #counts = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Counts another one, if the client may have it. */
  take(client: string): boolean {
    const count = (this.#counts.get(client) ?? 0) + 1;
    if (count > this.#most) return false;
    this.#counts.set(client, count);
    return true;
  }

  give(client: string): void {
    const left = (this.#counts.get(client) ?? 1) - 1;
    if (left > 0) this.#counts.set(client, left);
    else this.#counts.delete(client);
  }
}

interface Around {
  readonly answer: Answer;
  readonly bodies: BodyBudget;
  readonly logger: ConnectionLog;
  readonly limits: KmipLimits;
  /** Called once, when the client is known. */
  readonly onKnown: () => void;
}

interface From {
  readonly certificate: NonNullable<ApiRequest['certificate']>;
  readonly address: string | undefined;
}

/** Parts of the time for which a stranger's connection is kept. */
const strangerTurns = 10;

class Connection {
  readonly #socket: TLSSocket;
  readonly #around: Around;
  readonly #from: From;
  readonly #pieces = new Pieces();
  /** Bytes counted against the budget of all connections. */
  #counted = 0;
  #isKnown = false;
  /** Messages before the client was known. */
  #strange = 0;
  #isBusy = false;
  /** Whether the app has a message, which may take its time. */
  #isAsking = false;
  #isEnding = false;
  #late: NodeJS.Timeout | undefined;
  readonly #clock: NodeJS.Timeout;

  constructor(socket: TLSSocket, around: Around, from: From) {
    this.#socket = socket;
    this.#around = around;
    this.#from = from;
    socket.setTimeout(around.limits.idle, () => socket.destroy());
    this.#clock = this.#expectClient();
    socket.on('data', (chunk: Uint8Array) => this.#take(chunk));
    socket.once('close', () => {
      clearTimeout(this.#late);
      clearInterval(this.#clock);
      this.#count(0);
    });
  }

  /**
   * Closes the connection unless a message of a known client comes in time: anybody can make a certificate. Time is
   * counted in turns, so that a pause of this process, which reads nothing meanwhile, is only one of them.
   */
  #expectClient(): NodeJS.Timeout {
    let left = strangerTurns;
    const turn = (): void => {
      if (!this.#isAsking) left--;
      if (left <= 0) this.#socket.destroy();
    };
    return setInterval(turn, this.#around.limits.stranger / strangerTurns).unref();
  }

  /** Closes the connection, after the message under way. */
  finish(): void {
    this.#isEnding = true;
    if (!this.#isBusy) this.#socket.end();
  }

  #take(chunk: Uint8Array): void {
    this.#pieces.push(chunk);
    if (this.#isBusy) this.#socket.pause();
    this.#look();
  }

  /** Answers the next message if it is whole; refuses what cannot be one. */
  #look(): void {
    if (this.#isBusy || this.#isEnding || this.#pieces.length < headLength) {
      this.#wait();
      return;
    }
    const { limits } = this.#around;
    const head = this.#pieces.joined(headLength);
    const problem = headProblem(head, this.#isKnown ? limits.message : limits.firstMessage);
    if (problem !== undefined) {
      this.#refuse(unreadableMessage(Date.now(), problem));
      return;
    }
    const length = headLength + new DataView(head.buffer, head.byteOffset).getUint32(4);
    if (!this.#count(length)) {
      this.#refuse(unavailableMessage(Date.now()));
      return;
    }
    if (this.#pieces.length < length) {
      this.#wait();
      return;
    }
    clearTimeout(this.#late);
    this.#late = undefined;
    const message = this.#pieces.take(length);
    this.#isBusy = true;
    this.#socket.pause();
    void this.#answer(message);
  }

  /** A message that has begun must end in time. */
  #wait(): void {
    const isBegun = this.#pieces.length > 0 && !this.#isBusy;
    if (isBegun) this.#late ??= setTimeout(() => this.#socket.destroy(), this.#around.limits.begun).unref();
  }

  /** Counts this many bytes, and no others; says whether there was room. */
  #count(bytes: number): boolean {
    const { bodies } = this.#around;
    if (bytes === this.#counted) return true;
    if (this.#counted > 0) bodies.give(this.#counted, undefined);
    this.#counted = 0;
    if (bytes > 0 && !bodies.take(bytes, undefined)) return false;
    this.#counted = bytes;
    return true;
  }

  async #answer(message: Uint8Array): Promise<void> {
    const { certificate, address } = this.#from;
    this.#isAsking = true;
    const { outcome } = await this.#around.answer({
      method: 'POST',
      path: kmipPath,
      search: '',
      headers: {},
      surface: 'kmip',
      remoteAddress: address,
      certificate,
      isGone: () => this.#isGone(),
      body: { read: async (limit) => (message.length > limit ? undefined : message) },
    });
    this.#isAsking = false;
    if (outcome.status === 401) {
      this.#refuseClient();
      return;
    }
    const isAnswer = (outcome.sentStatus ?? outcome.status) === 200 && outcome.content instanceof Uint8Array;
    if (!isAnswer) {
      this.#refuse(unavailableMessage(Date.now()));
      return;
    }
    // Cast: checked above.
    const content = outcome.content as Uint8Array;
    if (outcome.status === 200 && outcome.isToStranger !== true) this.#know();
    if (!this.#isKnown) this.#strange++;
    if (outcome.headers?.Connection === 'close' || this.#strange >= this.#around.limits.strangerMessages) {
      this.#refuse(content);
      return;
    }
    this.#count(0);
    const isTaken = this.#socket.write(content);
    if (!isTaken && !this.#socket.destroyed) await drained(this.#socket);
    this.#isBusy = false;
    if (this.#isEnding) {
      this.#socket.end();
      return;
    }
    this.#socket.resume();
    this.#look();
  }

  /** Whether the client has ended the connection, which shows only where it is read. */
  #isGone(): boolean {
    this.#socket.resume();
    return this.#socket.destroyed || this.#socket.readableEnded;
  }

  /** The client is known from now on. */
  #know(): void {
    if (this.#isKnown) return;
    this.#isKnown = true;
    this.#strange = 0;
    this.#around.onKnown();
    clearInterval(this.#clock);
  }

  #refuseClient(): void {
    const { certificate, address } = this.#from;
    const fingerprint = fingerprintOf(certificate);
    this.#around.logger.warn(
      { address, certificate: fingerprint },
      'KMIP: a client certificate was refused: no API key has it as a proof, or no longer, and no authority here signed it',
    );
    this.#isEnding = true;
    this.#socket.end();
    this.#late ??= setTimeout(() => this.#socket.destroy(), this.#around.limits.begun).unref();
  }

  /** Answers, and closes the connection: what comes behind cannot be told apart. */
  #refuse(answer: Uint8Array): void {
    this.#isEnding = true;
    this.#pieces.clear();
    this.#socket.end(answer);
    this.#late ??= setTimeout(() => this.#socket.destroy(), this.#around.limits.begun).unref();
  }
}

/** Resolves when the socket takes more, or is closed. */
function drained(socket: TLSSocket): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      socket.off('drain', end);
      socket.off('close', end);
      resolve();
    };
    socket.once('drain', end);
    socket.once('close', end);
  });
}
