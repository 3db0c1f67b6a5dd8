// A syslog server over TCP (RFC 6587, octet counting) or TLS (RFC 5425). Neither protocol has acknowledgements, so
// records count once the server has read to the end: this side closes its half of the connection, and the server,
// having read everything, closes the other. A server that dies with unread data breaks the connection.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { trustSystem } from '../../platform/authorities.ts';
import { type Batch, DeliveryFault, networkFault, type Receiver, within } from './receiver.ts';
import { octetCounted, syslogMessage } from './record.ts';
import type { SyslogTarget } from './target.ts';

export interface SyslogSettings {
  /** PEM of the authorities to trust instead of the system's. */
  readonly ca?: string | undefined;
  /** This machine's name in the messages. */
  readonly hostname: string;
  readonly timeouts?: Timeouts | undefined;
}

/** Milliseconds to connect, to pass a batch to the system, and for the server to close. */
interface Timeouts {
  readonly connect: number;
  readonly write: number;
  readonly close: number;
}

const usualTimeouts: Timeouts = { connect: 10_000, write: 30_000, close: 15_000 };
/**
 * Quiet time in milliseconds before closing this half, so that data sent to a server already gone comes back as a
 * broken connection; and the least number of round trips.
 */
const leastQuiet = 200;
const quietTrips = 4;

/** Bytes that a server may send on a connection: reading them costs as much as serving. */
const mostHeard = 64 * 1024;

export class SyslogReceiver implements Receiver {
  readonly #target: SyslogTarget;
  readonly #settings: SyslogSettings;
  #connection: Connection | undefined;

  constructor(target: SyslogTarget, settings: SyslogSettings) {
    this.#target = target;
    this.#settings = settings;
  }

  async ready(): Promise<void> {
    const open = this.#connection;
    if (open) return open.check();
    const connection = new Connection(opened(this.#target, this.#settings), this.#settings.timeouts ?? usualTimeouts);
    this.#connection = connection;
    await connection.open(this.#target.tls ? 'secureConnect' : 'connect');
  }

  async send({ tenant, records }: Batch): Promise<void> {
    await this.ready();
    const frames = records.map((each) => octetCounted(syslogMessage(tenant, each, this.#settings.hostname)));
    await this.#connection?.write(frames.join(''));
  }

  async confirm(): Promise<void> {
    const connection = this.#connection;
    if (!connection) throw new DeliveryFault('broken', 'the connection is gone');
    await connection.finish();
    this.#connection = undefined;
  }

  drop(): void {
    this.#connection?.destroy();
    this.#connection = undefined;
  }
}

function opened({ host, port, tls }: SyslogTarget, { ca }: SyslogSettings): Socket {
  if (!tls) return connect({ host, port, noDelay: true, allowHalfOpen: true });
  if (ca === undefined) trustSystem();
  return connectTls({
    host,
    port,
    // An address has no name for SNI; it is compared with the addresses in the certificate.
    ...(/^[0-9.]+$|:/.test(host) ? {} : { servername: host }),
    minVersion: 'TLSv1.2',
    rejectUnauthorized: true,
    ...(ca === undefined ? {} : { ca }),
  });
}

class Connection {
  readonly #socket: Socket;
  readonly #timeouts: Timeouts;
  readonly #startedAt = performance.now();
  /** Rejects when the connection breaks, or the server ends it first. */
  readonly #broken = Promise.withResolvers<never>();
  /** Resolves when the server has closed its half. */
  readonly #ended = Promise.withResolvers<void>();
  #fault: DeliveryFault | undefined;
  #finishing = false;
  #quiet = leastQuiet;

  constructor(socket: Socket, timeouts: Timeouts) {
    this.#socket = socket;
    this.#timeouts = timeouts;
    // No rejection is unhandled if no caller is waiting.
    this.#broken.promise.catch(() => {});
    socket.on('error', (error) => this.#break(networkFault(error)));
    socket.on('end', () => {
      if (this.#finishing) this.#ended.resolve();
      else this.#break(new DeliveryFault('broken', 'it closed the connection'));
    });
    socket.on('close', () => this.#break(new DeliveryFault('broken', 'the connection was closed')));
    // Syslog servers send nothing; a little is discarded.
    let heard = 0;
    socket.on('data', (piece) => {
      heard += piece.length;
      if (heard <= mostHeard) return;
      this.#break(new DeliveryFault('broken', `it sent more than ${mostHeard} bytes, and syslog servers send nothing`));
      socket.destroy();
    });
  }

  /** Throws if the connection is broken. */
  check(): void {
    if (this.#fault) throw this.#fault;
  }

  async open(event: 'connect' | 'secureConnect'): Promise<void> {
    const opening = Promise.race([once(this.#socket, event).then(() => {}), this.#broken.promise]);
    await within(opening, this.#timeouts.connect, 'it does not answer').catch((error: unknown) => {
      this.destroy();
      throw networkFault(error);
    });
    this.#quiet = Math.max(leastQuiet, quietTrips * (performance.now() - this.#startedAt));
  }

  /** Resolves once the system has all of it, so that a server that does not read delays a batch and takes no memory. */
  async write(text: string): Promise<void> {
    this.check();
    const written = new Promise<void>((resolve, reject) => {
      this.#socket.write(text, (error) => (error ? reject(networkFault(error)) : resolve()));
    });
    written.catch(() => {});
    await within(Promise.race([this.#broken.promise, written]), this.#timeouts.write, 'it reads nothing');
  }

  async finish(): Promise<void> {
    this.check();
    await Promise.race([this.#broken.promise, new Promise((resolve) => setTimeout(resolve, this.#quiet))]);
    this.#finishing = true;
    this.#socket.end();
    await within(
      Promise.race([this.#broken.promise, this.#ended.promise]),
      this.#timeouts.close,
      'it does not close the connection once it has read everything',
    );
    this.#socket.destroy();
  }

  destroy(): void {
    this.#break(new DeliveryFault('broken', 'the connection was given up'));
    this.#socket.destroy();
  }

  #break(fault: DeliveryFault): void {
    this.#fault ??= fault;
    this.#broken.reject(fault);
  }
}
