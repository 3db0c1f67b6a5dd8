// Client certificates of TLS connections. Whether one is trusted is decided for each request, by the tenant's proofs:
// here none is refused, and no authority counts.
import { randomBytes } from 'node:crypto';
import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { ApiRequest } from '../http/request.ts';

type Presented = NonNullable<ApiRequest['certificate']>;

/** Chains that are kept for connections that resume a session, which remembers the client's own certificate alone. */
const mostChains = 4096;
/** Certificates that are taken from a chain. */
const longestChain = 8;
const ticketKeyLength = 48;

export class ClientCertificates {
  readonly #asks: () => boolean;
  #asked = false;
  /** Connections whose clients were not asked. */
  readonly #unasked = new WeakSet<Socket>();
  readonly #ofSocket = new WeakMap<Socket, Presented | 'none'>();
  /** By the fingerprint of the client's own certificate; the one that was used last at the end. */
  readonly #chains = new Map<string, readonly Buffer[]>();

  /** @param asks whether a new connection is asked for a certificate: browsers show their users a list of theirs. */
  constructor(asks: () => boolean) {
    this.#asks = asks;
  }

  /** Makes a server ask clients for a certificate, as long as that is wanted. They need not have one. */
  askAt(server: Server): void {
    if (!(server instanceof TlsServer)) return;
    // Node reads both for each connection.
    Object.defineProperty(server, 'requestCert', { get: () => this.#ask(server), set: () => {} });
    Object.assign(server, { rejectUnauthorized: false });
    server.on('secureConnection', (socket) => {
      if (!this.#asked) this.#unasked.add(socket);
    });
  }

  /** Whether the client would be asked only on a new connection: its proof is younger than this one. */
  isLate(socket: Socket): boolean {
    return this.#unasked.has(socket) && this.#asks();
  }

  #ask(server: TlsServer): boolean {
    const asks = this.#asks();
    // Sessions of connections that were not asked would be resumed without a certificate.
    if (asks && !this.#asked) server.setTicketKeys(randomBytes(ticketKeyLength));
    this.#asked = asks;
    return asks;
  }

  /** One object for each connection; undefined if its client has shown no certificate. */
  of(socket: Socket): Presented | undefined {
    let found = this.#ofSocket.get(socket);
    if (!found) {
      found = (socket instanceof TLSSocket ? this.#read(socket) : undefined) ?? 'none';
      this.#ofSocket.set(socket, found);
    }
    return found === 'none' ? undefined : found;
  }

  #read(socket: TLSSocket): Presented | undefined {
    const certificate = socket.getPeerX509Certificate();
    if (!certificate) return undefined;
    const { raw, fingerprint256 } = certificate;
    const chain: Buffer[] = [];
    let issuer = certificate.issuerCertificate;
    for (; issuer && chain.length < longestChain; issuer = issuer.issuerCertificate) {
      if (issuer.fingerprint256 === fingerprint256 || chain.some((each) => issuer?.raw.equals(each))) break;
      chain.push(issuer.raw);
    }
    return { leaf: raw, chain: this.#chainOf(fingerprint256, chain, socket.isSessionReused()) };
  }

  /**
   * Sessions cannot be told apart, so that one which is resumed has all that any connection with its leaf has sent: the
   * last first. Other connections have only their own.
   */
  #chainOf(leaf: string, sent: readonly Buffer[], isResumed: boolean): readonly Buffer[] {
    const kept = this.#chains.get(leaf) ?? [];
    const isSent = (each: Buffer): boolean => sent.some((other) => each.equals(other));
    const all = [...sent, ...kept.filter((each) => !isSent(each))].slice(0, longestChain);
    this.#chains.delete(leaf);
    if (all.length === 0) return all;
    this.#chains.set(leaf, all);
    const [oldest] = this.#chains.size > mostChains ? this.#chains.keys() : [];
    if (oldest !== undefined) this.#chains.delete(oldest);
    return isResumed ? all : sent;
  }
}
