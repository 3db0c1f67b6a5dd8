// Processes of the bench: started on a core of their own if `taskset` exists, and ready once they print a known line.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

const pinning = spawnSync('taskset', ['--version']).status === 0;

export interface Started {
  readonly child: ChildProcess;
  /** The part that the ready line captured. */
  readonly match: string;
  stop(): Promise<void>;
}

/** A core's number, or `any` to leave the choice to the system. */
export type Core = number | 'any';

/** Starts a program on a core and waits for a line that matches `ready`. */
export async function start(core: Core, command: string, args: readonly string[], ready: RegExp): Promise<Started> {
  const pinned = pinning && core !== 'any' ? ['taskset', '-c', String(core), command, ...args] : [command, ...args];
  const child = spawn(pinned[0] ?? command, pinned.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] });
  let seen = '';
  const match = await new Promise<string>((resolve, reject) => {
    const look = (chunk: Buffer): void => {
      seen = (seen + chunk).slice(-10_000);
      const found = ready.exec(seen);
      if (found) resolve(found[1] ?? found[0]);
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
    child.once('exit', (code) => reject(new Error(`${command} ended with ${code}: ${seen}`)));
  });
  return {
    child,
    match,
    async stop() {
      if (child.exitCode !== null) return;
      const gone = once(child, 'exit');
      child.kill('SIGTERM');
      await gone;
    },
  };
}

/** Pins this process to one core if possible; returns a function that undoes it. */
export function stayOn(core: number): () => void {
  const all = availableParallelism();
  if (!pinning || all <= core) return () => {};
  const put = (cores: string) => spawnSync('taskset', ['-acp', cores, String(process.pid)]);
  put(String(core));
  return () => put(`0-${all - 1}`);
}

/** CPU time that a process has used, in user and system mode; Linux only. */
export function cpuSeconds(pid: number | undefined): number {
  // After the name, which may contain spaces: ticks of 10 ms in the 12th and 13th field.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** The resident memory of a process in MB. */
export function residentMegabytes(pid: number | undefined): number {
  return Number(spawnSync('ps', ['-o', 'rss=', '-p', String(pid)]).stdout) / 1024;
}

/**
 * Resident memory that is not backed by a file, in MB; Linux only. More of a file, such as the executable's code,
 * counts as resident if the system maps it in pages of 2 MB, which depends on the file's layout on disk.
 */
export function anonymousMegabytes(pid: number | undefined): number {
  const kilobytes = /^RssAnon:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes) / 1024;
}
