// Latencies of one request made over and over, finer than the load of requests.ts has them, as a process of its own:
// each client sends its next request when the last is answered. It speaks to bare sockets: by node:http it took more
// processor time for a request than the server does. Argument: JSON of `Asked`; prints JSON of `Latencies`.
import { connect, type Socket } from 'node:net';
import { type Core, start } from './process.ts';

export interface Request {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** GET where there is none. */
  readonly body?: string | undefined;
}

export interface Asked extends Request {
  readonly clients: number;
  readonly seconds: number;
}

export interface Latencies {
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly longest: number;
}

/** Measures in a process of its own. */
export async function latencies(core: Core, asked: Asked): Promise<Latencies> {
  const tool = await start(core, process.execPath, [import.meta.filename, JSON.stringify(asked)], /^(\{.*\})$/m);
  await tool.stop();
  return JSON.parse(tool.match);
}

/** A connection that sends one request again and again, and looks at its answers no closer than it has to. */
export class Client {
  readonly #socket: Socket;
  readonly #request: Uint8Array;
  /** What came of a head that is not there as a whole. */
  #head = '';
  /** Bytes of the body that are still to come; undefined before a head. */
  #left: number | undefined;
  #answered: (() => void) | undefined;
  #failed: ((error: Error) => void) | undefined;

  constructor({ url, headers, body }: Request) {
    const { hostname, port, host, pathname, search } = new URL(url);
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const lines = Object.entries({ ...headers, host, ...length });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    const method = body === undefined ? 'GET' : 'POST';
    this.#request = Buffer.from(`${method} ${pathname}${search} HTTP/1.1\r\n${head}\r\n${body ?? ''}`);
    this.#socket = connect(Number(port), hostname).setNoDelay();
    this.#socket.on('data', (piece: Buffer) => this.#take(piece));
    this.#socket.on('error', (error) => this.#failed?.(error));
    this.#socket.on('close', () => this.#failed?.(new Error('the connection was closed')));
  }

  /** Resolves with the last byte of an answer of status 200. */
  ask(): Promise<void> {
    this.#socket.write(this.#request);
    return new Promise((resolve, reject) => {
      this.#answered = resolve;
      this.#failed = reject;
    });
  }

  end(): void {
    this.#failed = undefined;
    this.#socket.destroy();
  }

  #take(piece: Buffer): void {
    this.#left = this.#left === undefined ? this.#leftBehindHead(piece) : this.#left - piece.length;
    if (this.#left === undefined || this.#left > 0) return;
    this.#left = undefined;
    this.#answered?.();
  }

  #leftBehindHead(piece: Buffer): number | undefined {
    this.#head += piece.toString('latin1');
    const end = this.#head.indexOf('\r\n\r\n');
    if (end < 0) return undefined;
    const head = this.#head.slice(0, end);
    const came = this.#head.length - end - 4;
    this.#head = '';
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    if (head.startsWith('HTTP/1.1 200 ') && length !== undefined) return Number(length) - came;
    this.#failed?.(new Error(`answered ${head}`));
    return undefined;
  }
}

async function measure(asked: Asked): Promise<Latencies> {
  const took: number[] = [];
  const clients = Array.from({ length: asked.clients }, () => new Client(asked));
  const end = performance.now() + asked.seconds * 1000;
  const askOn = async (client: Client) => {
    while (performance.now() < end) {
      const before = performance.now();
      await client.ask();
      took.push(performance.now() - before);
    }
  };
  await Promise.all(clients.map(askOn));
  for (const client of clients) client.end();
  const sorted = Float64Array.from(took).sort();
  const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? Number.NaN;
  return {
    perSecond: sorted.length / asked.seconds,
    p50: at(0.5),
    p99: at(0.99),
    longest: sorted.at(-1) ?? Number.NaN,
  };
}

if (import.meta.main) console.log(JSON.stringify(await measure(JSON.parse(process.argv[2] ?? ''))));
