// Stopping and starting a server during an upgrade, through its supervisor: systemd, given commands, or none, in which
// case the upgrade runs a server itself for the trial. Also detects its end early.
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile, readlink, stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { KmsError } from '../errors.ts';
import { inDir } from '../platform/data-dir.ts';
import { lockDirectory, lockFile } from '../platform/lock.ts';
import { asOwner, holderOf, previousOf } from './files.ts';
import type { Service } from './journal.ts';

/** The systemd unit of the process; undefined if it has none. */
export async function unitOf(pid: number): Promise<Service | undefined> {
  const there = await stat('/run/systemd/system').catch(() => undefined);
  return there && unitIn(await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => ''));
}

/** The systemd unit in the text of `/proc/PID/cgroup`. */
export function unitIn(groups: string): Service | undefined {
  const [, slices = '', unit] = /^0::(.*)\/([^/\n]+\.service)$/m.exec(groups) ?? [];
  // Not a service: a login session's terminal, or the manager of a user's units.
  if (unit === undefined || /^user@/.test(unit)) return undefined;
  return { kind: 'systemd', unit, user: /\/user@\d+\.service(\/|$)/.test(slices) };
}

/** The executable of the process, even if it was replaced since; undefined if that is not readable. */
export async function executableOf(pid: number): Promise<string | undefined> {
  const path = await readlink(`/proc/${pid}/exe`).catch(() => undefined);
  return path?.replace(/ \(deleted\)$/, '');
}

interface ControlSettings {
  readonly data: string;
  /** Whether the administrator named the directory: a server that is given its name runs the commands in the seal. */
  readonly isNamed: boolean;
  /** Milliseconds for a start, and for a stop. */
  readonly limit: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Arguments of the upgrade's own server besides the data directory. */
  readonly args: readonly string[];
}

/** Milliseconds that a process may take to end before it is killed. */
const grace = 20_000;

export class ServiceControl {
  readonly #settings: ControlSettings;
  #child: ChildProcess | undefined;
  /** The last output of the child. */
  #said = '';

  constructor(settings: ControlSettings) {
    this.#settings = settings;
  }

  async stop(service: Service, executable: string): Promise<void> {
    if (service.kind === 'systemd') await this.#systemctl(service, 'stop');
    // It may not be running. The check below shows whether it is gone.
    else if (service.kind === 'commands') await this.#shell(service.stop, 'stop it').catch(() => undefined);
    else await this.endChild();
    await this.#endHolder(executable);
  }

  async start(service: Service, executable: string): Promise<void> {
    if (service.kind === 'systemd') {
      // Earlier failed starts count against later ones.
      await this.#systemctl(service, 'reset-failed').catch(() => undefined);
      await this.#systemctl(service, 'start');
    } else if (service.kind === 'commands') await this.#shell(service.start, 'start it');
    else this.#startChild(executable);
  }

  /** Why waiting for the server is pointless; undefined while it is not. */
  async failure(service: Service): Promise<string | undefined> {
    if (service.kind === 'none') {
      const { exitCode, signalCode } = this.#child ?? {};
      if (exitCode === null && signalCode === null) return undefined;
      const last = this.#said.trimEnd().split('\n').at(-1);
      return `it ended with ${exitCode ?? signalCode ?? 'nothing'}${last ? `: ${last}` : ''}`;
    }
    if (service.kind === 'commands') return undefined;
    const shown = await this.#systemctl(service, 'show', '--property=ActiveState,NRestarts').catch(() => '');
    if (/^ActiveState=failed$/m.test(shown) || /^NRestarts=[1-9]/m.test(shown)) {
      return `systemd says that it failed: journalctl -u ${service.unit}`;
    }
    return undefined;
  }

  /** Ends the upgrade's own server. */
  async endChild(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill('SIGTERM');
    const killer = setTimeout(() => child.kill('SIGKILL'), Math.min(grace, this.#settings.limit));
    await ended;
    clearTimeout(killer);
  }

  #startChild(executable: string): void {
    const { data, isNamed, args, env } = this.#settings;
    this.#said = '';
    const child = spawn(
      executable,
      ['serve', ...(isNamed ? ['--data', data] : []), '--listen', '127.0.0.1:0', ...args],
      {
        env,
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#said = (this.#said + text).slice(-2000);
    });
    child.on('error', (error) => {
      this.#said = error.message;
    });
    this.#child = child;
  }

  /** Ends any process that still has the directory after the stop, if it runs this executable. */
  async #endHolder(executable: string): Promise<void> {
    const { data, limit } = this.#settings;
    if (await this.#isFree(Math.min(grace, limit))) return;
    const pid = await holderOf(data);
    const path = pid === undefined ? undefined : await executableOf(pid);
    if (pid === undefined || path === undefined || ![executable, previousOf(executable)].includes(path)) {
      throw new KmsError('in-use', `${data}: still in use by ${pid === undefined ? 'a process' : `process ${pid}`}`, {
        hint: `end it (\`fuser ${inDir(data, lockFile)}\` says which it is), then run \`kms upgrade --resume\``,
      });
    }
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      try {
        process.kill(pid, signal);
      } catch {
        // It has ended on its own, or belongs to another user: the lock shows which.
      }
      if (await this.#isFree(Math.min(grace, limit))) return;
    }
    throw new KmsError('in-use', `${data}: process ${pid} does not end`, {
      hint: 'end it, then run `kms upgrade --resume`',
    });
  }

  async #isFree(within: number): Promise<boolean> {
    for (const until = performance.now() + within; await this.#isHeld(); await delay(50))
      if (performance.now() > until) return false;
    return true;
  }

  async #isHeld(): Promise<boolean> {
    try {
      await asOwner(this.#settings.data, async () => lockDirectory(this.#settings.data, { onlyLooks: true }).release());
      return false;
    } catch (error) {
      if (error instanceof KmsError && error.code === 'in-use') return true;
      throw error;
    }
  }

  #systemctl(service: Service & { readonly kind: 'systemd' }, verb: string, ...more: string[]): Promise<string> {
    const args = [...(service.user ? ['--user'] : []), verb, ...more, service.unit];
    return this.#run('systemctl', args, `systemctl ${verb} ${service.unit}`);
  }

  #shell(line: string, why: string): Promise<string> {
    return this.#run('/bin/sh', ['-c', line], `the command that is to ${why}`);
  }

  /** Processes started by the command may keep running, so this must not wait for their streams. */
  #run(command: string, args: readonly string[], name: string): Promise<string> {
    const { env, limit } = this.#settings;
    return new Promise((resolve, reject) => {
      const isShown = args.includes('show');
      const child = spawn(command, args, { env, stdio: ['ignore', isShown ? 'pipe' : 'ignore', 'ignore'] });
      let text = '';
      child.stdout?.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      const timer = setTimeout(() => {
        child.kill('SIGKILL');
        reject(new KmsError('refused', `${name} took longer than ${limit / 1000} s`, { hint: 'see --time-limit' }));
      }, limit);
      child.on('error', (cause) => {
        clearTimeout(timer);
        reject(new KmsError('refused', `${name}: ${cause.message}`, { hint: 'check that it can be run', cause }));
      });
      child.on(isShown ? 'close' : 'exit', (code, signal) => {
        clearTimeout(timer);
        if (code === 0) resolve(text);
        else reject(new KmsError('refused', `${name} ended with ${code ?? signal}`, { hint: 'type it to see why' }));
      });
    });
  }
}
