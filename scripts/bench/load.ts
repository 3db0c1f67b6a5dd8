// Load on one URL, as a process of its own: each client sends its next request once the last is answered. Clients use
// bare sockets: node:http, or a tool that parses more of an answer, took more processor time for a request than the
// server did, so that the load limited both sides of a comparison. Argument: JSON of `Load`; prints JSON of
// `MeasuredWithFailures`.
import { connect, type Socket } from 'node:net';
import { type Core, start } from './process.ts';

export interface Request {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent with POST; GET if absent. */
  readonly body?: string | undefined;
}

export interface Load extends Request {
  /** Default: 64. */
  readonly clients?: number;
  readonly seconds: number;
}

export interface Measured {
  readonly perSecond: number;
  /** Milliseconds, to a hundredth. */
  readonly p50: number;
  readonly p99: number;
  readonly longest: number;
}

export interface MeasuredWithFailures extends Measured {
  /** Number of failures by cause: a status, or the connection's error. */
  readonly failures: Readonly<Record<string, number>>;
}

/** Throws if a request failed. */
export async function load(core: Core, asked: Load): Promise<Measured> {
  const { failures, ...measured } = await loadWithFailures(core, asked);
  const [failure] = Object.entries(failures);
  if (failure) throw new Error(`${failure[1]} requests to ${asked.url} failed: ${failure[0]}`);
  return measured;
}

export async function loadWithFailures(core: Core, asked: Load): Promise<MeasuredWithFailures> {
  const tool = await start(core, process.execPath, [import.meta.filename, JSON.stringify(asked)], /^(\{.*\})$/m);
  await tool.stop();
  return JSON.parse(tool.match);
}

interface Side extends Request {
  /** Seconds of processor time that its server has used. */
  readonly cpu: () => number;
}

export interface MeasuredSide extends Measured {
  /** Processor time of the server for one request, in µs. */
  readonly cpu: number;
}

/** Seconds until V8 has compiled the hot code. */
const warmUp = 5;

/**
 * Measures every side in each round, after one round to warm up; returns results by side, then by round. Every other
 * round runs in reverse order.
 */
export async function inTurns(sides: readonly Side[], seconds: number, rounds: number): Promise<MeasuredSide[][]> {
  const all: MeasuredSide[][] = sides.map(() => []);
  for (let round = 0; round <= rounds; round++) {
    const order = [...sides.entries()];
    for (const [at, { cpu, ...side }] of round % 2 === 0 ? order : order.reverse()) {
      const before = cpu();
      const duration = round === 0 ? warmUp : seconds;
      const measured = await load(1, { ...side, seconds: duration });
      const used = ((cpu() - before) * 1e6) / (measured.perSecond * duration);
      if (round > 0) all[at]?.push({ ...measured, cpu: used });
    }
  }
  return all;
}

/** Mean over all rounds, including those disturbed by, for example, a checkpoint. */
export function mean(rounds: readonly MeasuredSide[], field: 'perSecond' | 'cpu'): number {
  return rounds.reduce((sum, each) => sum + each[field], 0) / rounds.length;
}

/** A connection that sends one request again and again and parses only as much of the answers as it must. */
export class Client {
  readonly #socket: Socket;
  readonly #request: Uint8Array;
  /** The part received of a head that is still incomplete. */
  #head = '';
  /** Bytes of the body still to come; undefined until the head is complete. */
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

  /** Resolves with the last byte of an answer of status 200. After a failure the client can't be used any more. */
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
    this.#failed?.(new Error(`answered ${head.slice(0, head.indexOf('\r\n'))}`));
    return undefined;
  }
}

/** A histogram of times in milliseconds. */
class Times {
  /** Counts by hundredths of a millisecond. */
  readonly #counts = new Map<number, number>();
  total = 0;
  longest = 0;

  add(milliseconds: number): void {
    const hundredths = Math.round(milliseconds * 100);
    this.#counts.set(hundredths, (this.#counts.get(hundredths) ?? 0) + 1);
    this.total++;
    this.longest = Math.max(this.longest, milliseconds);
  }

  /** The time below which `share` of them lie. */
  quantile(share: number): number {
    let below = 0;
    for (const [hundredths, count] of [...this.#counts].toSorted(([a], [b]) => a - b)) {
      below += count;
      if (below >= share * this.total) return hundredths / 100;
    }
    return Number.NaN;
  }
}

async function measure({ clients = 64, seconds, ...request }: Load): Promise<MeasuredWithFailures> {
  const times = new Times();
  const failures: Record<string, number> = {};
  const end = performance.now() + seconds * 1000;
  const askOn = async (): Promise<void> => {
    let client = new Client(request);
    while (performance.now() < end) {
      const before = performance.now();
      try {
        await client.ask();
        times.add(performance.now() - before);
      } catch (error) {
        const what = error instanceof Error ? error.message : String(error);
        failures[what] = (failures[what] ?? 0) + 1;
        client.end();
        client = new Client(request);
      }
    }
    client.end();
  };
  await Promise.all(Array.from({ length: clients }, askOn));
  const { total, longest } = times;
  return { perSecond: total / seconds, p50: times.quantile(0.5), p99: times.quantile(0.99), longest, failures };
}

if (import.meta.main) console.log(JSON.stringify(await measure(JSON.parse(process.argv[2] ?? ''))));
