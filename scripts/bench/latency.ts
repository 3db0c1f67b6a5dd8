// Latencies of one request made over and over, finer than the load of requests.ts has them, as a process of its own:
// each client sends its next request when the last is answered. Argument: JSON of `Asked`; prints JSON of `Latencies`.
import { Agent, request as send } from 'node:http';
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

async function measure({ url, headers, body, clients, seconds }: Asked): Promise<Latencies> {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const sent = { method: 'POST', agent, headers: { ...headers, 'content-length': Buffer.byteLength(body) } };
  const took: number[] = [];
  const ask = () =>
    new Promise<void>((resolve, reject) => {
      const before = performance.now();
      const request = send(url, sent, (response) => {
        if (response.statusCode !== 200) reject(new Error(`answered ${response.statusCode}`));
        response.resume().on('end', () => {
          took.push(performance.now() - before);
          resolve();
        });
      });
      request.on('error', reject).end(body);
    });
  const end = performance.now() + seconds * 1000;
  const client = async () => {
    while (performance.now() < end) await ask();
  };
  await Promise.all(Array.from({ length: clients }, client));
  agent.destroy();
  const sorted = Float64Array.from(took).sort();
  const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? Number.NaN;
  return { perSecond: sorted.length / seconds, p50: at(0.5), p99: at(0.99), longest: sorted.at(-1) ?? Number.NaN };
}

if (import.meta.main) console.log(JSON.stringify(await measure(JSON.parse(process.argv[2] ?? ''))));
