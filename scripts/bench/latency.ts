// Latencies of one request made over and over, finer than the load of requests.ts has them, as a process of its own:
// each client sends its next request when the last is answered. It speaks to bare sockets: by node:http it took more
// processor time for a request than the server does. Argument: JSON of `Asked`; prints JSON of `Latencies`.
import { connect, type Socket } from 'node:net';
import { type Core, start } from './process.ts';

export interface Asked {
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: string;
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

/** The answers that a connection gives, one after the other, as far as is to be known of them. */
class Client {
  readonly #socket: Socket;
  readonly #request: Uint8Array;
  #came: Buffer = Buffer.alloc(0);
  #answered: (() => void) | undefined;
  #failed: ((error: Error) => void) | undefined;

  constructor({ url, headers, body }: Asked) {
    const { hostname, port, host, pathname } = new URL(url);
    const lines = Object.entries({ ...headers, host, 'content-length': String(Buffer.byteLength(body)) });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    this.#request = Buffer.from(`POST ${pathname} HTTP/1.1\r\n${head}\r\n${body}`);
    this.#socket = connect(Number(port), hostname).setNoDelay();
    this.#socket.on('data', (piece: Buffer) => this.#take(piece));
    this.#socket.on('error', (error) => this.#failed?.(error));
    this.#socket.on('close', () => this.#failed?.(new Error('the connection was closed')));
  }

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
    this.#came = this.#came.length === 0 ? piece : Buffer.concat([this.#came, piece]);
    const end = this.#came.indexOf('\r\n\r\n');
    if (end < 0) return;
    const head = this.#came.toString('latin1', 0, end);
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    if (!head.startsWith('HTTP/1.1 200 ') || length === undefined) this.#failed?.(new Error(`answered ${head}`));
    else if (this.#came.length >= end + 4 + Number(length)) {
      this.#came = Buffer.alloc(0);
      this.#answered?.();
    }
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
