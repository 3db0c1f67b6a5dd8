// One measurement of load, as a process of its own: 64 connections against one URL. Argument: JSON of `Load`; prints
// JSON of `Measured`.
import autocannon, { type Result } from 'autocannon';
import { type Core, start } from './process.ts';

export interface Load {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly seconds: number;
}

export interface Measured {
  readonly perSecond: number;
  /** Milliseconds, to a quarter. */
  readonly p50: number;
  readonly p99: number;
  /** Answers other than 2xx, and failures of the connection. */
  readonly failed: number;
  /** How many of each: a status, or what is said of the connection. */
  readonly failures: Readonly<Record<string, number>>;
  /** Processor time of the server for one request, in µs; 0 where it was not asked for. */
  readonly cpu: number;
}

/** Measures in a process of its own. */
export async function load(core: Core, request: Load): Promise<Measured> {
  const tool = await start(core, process.execPath, [import.meta.filename, JSON.stringify(request)], /^(\{.*\})$/m);
  await tool.stop();
  return JSON.parse(tool.match);
}

interface Side extends Omit<Load, 'seconds'> {
  /** Seconds that its server used. */
  readonly cpu?: () => number;
}

/** Seconds until V8 has compiled what is hot. */
const warmUp = 5;

/** Each of them in each round, and once before, to warm up; by side, then by round. */
export async function inTurns(sides: readonly Side[], seconds: number, rounds: number): Promise<Measured[][]> {
  const all: Measured[][] = sides.map(() => []);
  for (let round = 0; round <= rounds; round++) {
    for (const [at, { cpu = () => 0, ...side }] of sides.entries()) {
      const before = cpu();
      const duration = round === 0 ? warmUp : seconds;
      const measured = await load(1, { ...side, seconds: duration });
      const used = ((cpu() - before) * 1e6) / (measured.perSecond * duration);
      if (round > 0) all[at]?.push({ ...measured, cpu: used });
    }
  }
  return all;
}

/** Requests a second over all rounds, with what came between in some of them, such as a checkpoint. */
export function throughput(rounds: readonly Measured[]): number {
  return rounds.reduce((sum, { perSecond }) => sum + perSecond, 0) / rounds.length;
}

/** Of times in milliseconds. */
class Quarters {
  readonly #counts: number[] = [];
  #total = 0;

  add(milliseconds: number): void {
    const quarter = Math.round(milliseconds * 4);
    this.#counts[quarter] = (this.#counts[quarter] ?? 0) + 1;
    this.#total++;
  }

  /** Below which `share` of them are. */
  quantile(share: number): number {
    let below = 0;
    for (const [quarter, count = 0] of this.#counts.entries()) {
      below += count;
      if (below >= share * this.#total) return quarter / 4;
    }
    return Number.NaN;
  }
}

if (import.meta.main) {
  const { seconds, ...request }: Load = JSON.parse(process.argv[2] ?? '');
  const times = new Quarters();
  const failures: Record<string, number> = {};
  const failed = (what: string | number): void => {
    failures[what] = (failures[what] ?? 0) + 1;
  };
  const result = await new Promise<Result>((resolve, reject) => {
    const done = (error: unknown, measured: Result): void => (error ? reject(error) : resolve(measured));
    const running = autocannon({ ...request, connections: 64, duration: seconds }, done);
    running.on('response', (_client, status, _bytes, milliseconds) => {
      times.add(milliseconds);
      if (status >= 300) failed(status);
    });
    running.on('reqError', ({ message }: Error) => failed(message));
  });
  const measured: Measured = {
    perSecond: result.requests.total / result.duration,
    p50: times.quantile(0.5),
    p99: times.quantile(0.99),
    failed: result.non2xx + result.errors,
    failures,
    cpu: 0,
  };
  console.log(JSON.stringify(measured));
}
