// A shell in a directory of its own, with `kms` run from the sources. Serving commands run in the background; ports
// named in the pages are mapped to free ones.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { buildClient, packClient } from '../../build/client.ts';
import { paths } from '../../build/paths.ts';
import { freePort } from '../support/free-port.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const patience = 120_000;
const portsInPages = ['8080', '8443', '8081', '7500', '4599', '4566'];

export interface Ended {
  readonly output: string;
  readonly exitCode: number;
}

/** The user and the executable, for programs that refuse to run as root. */
export interface Typist {
  readonly user: { readonly uid?: number; readonly gid?: number };
  readonly executable: string;
}

/** Shells whose processes must end with this process. */
const open = new Set<Shell>();

function killAll(): void {
  for (const shell of open) shell.kill();
}

process.once('exit', killAll);
for (const name of ['SIGTERM', 'SIGINT'] as const) {
  process.once(name, () => {
    killAll();
    // Restores the signal's default effect, unless the test runner listens too.
    if (process.listenerCount(name) === 0) process.kill(process.pid, name);
  });
}

export class Shell {
  readonly #base: string;
  readonly #typist: Typist | undefined;
  readonly #ports: ReadonlyMap<string, string>;
  readonly #bash: ChildProcess;
  readonly #answers: Interface;
  #count = 0;
  /** Process groups of servers. */
  #servers: number[] = [];

  /** Home directory of the user. */
  readonly home: string;

  private constructor(base: string, home: string, ports: ReadonlyMap<string, string>, typist: Typist | undefined) {
    this.#base = base;
    this.#typist = typist;
    this.home = home;
    this.#ports = ports;
    this.#bash = spawn('bash', ['--noprofile', '--norc'], {
      cwd: join(base, 'work'),
      // A session of its own, by which all processes started in it are found.
      detached: true,
      ...typist?.user,
      // The shell reports on `>&3` that a command has ended.
      stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
      env: {
        // Root has the last two, as in the guides that mount and format; an ordinary user of Debian does not.
        PATH: `${join(base, 'bin')}:${process.env.PATH}:/usr/sbin:/sbin`,
        HOME: home,
        LANG: 'C.UTF-8',
        // An address where nothing answers: packages are installed from files.
        npm_config_registry: 'http://127.0.0.1:9',
        NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/kms-docs'),
        KMS_LISTEN: `127.0.0.1:${ports.get('8080')}`,
      },
    });
    // Cast: the fourth pipe is readable.
    this.#answers = createInterface({ input: this.#bash.stdio[3] as Readable });
    // Each server is a process group, so that it can be ended with all that it started.
    this.#bash.stdin?.on('error', () => {}).write('set -m\n');
    open.add(this);
  }

  /** Session id of everything that it starts. */
  get session(): number {
    return this.#bash.pid ?? 0;
  }

  /** Opens a shell in a new home, or in one used before. */
  static async open(home?: string, typist?: Typist): Promise<Shell> {
    const base = realpathSync(mkdtempSync(join(tmpdir(), 'kms-docs-')));
    for (const dir of ['bin', 'home', 'work/dist', 'work/scripts']) mkdirSync(join(base, dir), { recursive: true });
    const kms = `#!/bin/sh\nexec '${process.execPath}' '${join(root, 'src/main.ts')}' "$@"\n`;
    for (const name of ['bin/kms', 'work/dist/kms']) script(join(base, name), kms);
    script(join(base, 'bin/age-plugin-kms'), kms.replace('"$@"', '__age-plugin "$@"'));
    // Its other work, installing and building, has tests of its own.
    script(join(base, 'work/scripts/start'), '#!/bin/sh\nexec kms serve --data ./kms-data "$@"\n');
    script(join(base, 'bin/node'), `#!/bin/sh\nexec '${process.execPath}' "$@"\n`);
    symlinkSync(join(root, 'docs'), join(base, 'work/docs'));
    for (const dir of ['work', 'work/dist'])
      copyFileSync(await clientPackage(), join(base, dir, basename(paths.clientPackage)));
    const ports = new Map<string, string>();
    for (const port of portsInPages) ports.set(port, String(await freePort()));
    if (typist) {
      for (const name of ['bin/kms', 'work/dist/kms']) {
        rmSync(join(base, name));
        copyFileSync(typist.executable, join(base, name));
      }
      for (const dir of ['', 'bin', 'home', 'work', 'work/dist', 'work/scripts']) own(join(base, dir), typist);
    }
    return new Shell(base, home ?? join(base, 'home'), ports, typist);
  }

  /** Writes a file to the commands' working directory. */
  write(name: string, text: string): void {
    const path = this.path(name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, this.#withPorts(text));
    if (this.#typist) own(path, this.#typist);
  }

  /** Makes a program available to the commands by this name. */
  link(name: string, path: string): void {
    script(join(this.#base, 'bin', name), `#!/bin/sh\nexec '${path}' "$@"\n`);
  }

  /** Path of a file in the commands' working directory. */
  path(name: string): string {
    return join(this.#base, 'work', name);
  }

  /** The free port that a port on the page is mapped to. */
  port(inPage: string): number {
    return Number(this.#ports.get(inPage));
  }

  /** Runs a command to its end. */
  async run(command: string): Promise<Ended> {
    const { script: file, output } = this.#files(command);
    const ended = await this.#ask(`. ${file} >${output} 2>&1 </dev/null; echo $? >&3`, command);
    return { output: this.#read(output), exitCode: Number(ended) };
  }

  /** Runs a serving command until it listens and `enough` accepts its output; returns the output so far. */
  async serve(command: string, enough: (output: string) => boolean): Promise<Ended> {
    // `exec` replaces the subshell, so that nothing of it is left once the server has ended.
    const { script: file, output } = this.#files(`exec env ${command}`);
    const group = Number(await this.#ask(`. ${file} >${output} 2>&1 </dev/null & echo $! >&3; disown`, command));
    this.#servers.push(group);
    const until = Date.now() + patience;
    for (;;) {
      const said = this.#read(output);
      const listens = said.includes('listening on ');
      if ((listens && enough(said)) || Date.now() > until) return { output: said, exitCode: listens ? 0 : 1 };
      if (!isAlive(group)) return { output: said, exitCode: 1 };
      await setTimeout(20);
    }
  }

  /** Stops all servers, as Ctrl-C would. */
  async stopServers(): Promise<void> {
    for (const group of this.#servers.splice(0)) {
      signal(group, 'SIGTERM');
      const until = Date.now() + patience;
      while (isAlive(group)) {
        if (Date.now() > until) signal(group, 'SIGKILL');
        await setTimeout(20);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopServers();
    this.#bash.stdin?.end();
    const until = Date.now() + 5000;
    while (inSession(this.session).includes(this.session) && Date.now() < until) await setTimeout(20);
    this.kill();
    // A killed process stays listed until it is reaped.
    const gone = Date.now() + patience;
    while (inSession(this.session).length > 0 && Date.now() < gone) await setTimeout(20);
    open.delete(this);
    rmSync(this.#base, { recursive: true, force: true });
  }

  /** Kills everything left at once, such as background processes and commands that never ended. */
  kill(): void {
    for (const pid of inSession(this.session)) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended meanwhile.
      }
    }
  }

  #files(command: string): { script: string; output: string } {
    const place = join(this.#base, `command-${++this.#count}`);
    writeFileSync(place, `${this.#withPorts(command)}\n`);
    writeFileSync(`${place}.output`, '');
    if (this.#typist) for (const path of [place, `${place}.output`]) own(path, this.#typist);
    return { script: place, output: `${place}.output` };
  }

  async #ask(line: string, command: string): Promise<string> {
    const answer = once(this.#answers, 'line');
    this.#bash.stdin?.write(`${line}\n`);
    const inTime = new AbortController();
    const late = setTimeout(patience, 'late' as const, { signal: inTime.signal }).catch(() => 'in time' as const);
    const gone = once(this.#bash, 'exit').then(() => 'gone' as const);
    const ended = await Promise.race([answer, late, gone]);
    inTime.abort();
    if (ended === 'gone') throw new Error(`it ends the shell: ${command}`);
    if (ended !== 'late') return String(ended[0]);
    this.kill();
    throw new Error(`it does not end: ${command}`);
  }

  #read(output: string): string {
    let text = readFileSync(output, 'utf8');
    for (const [inPage, real] of this.#ports) text = text.replaceAll(`:${real}`, `:${inPage}`);
    return text;
  }

  #withPorts(text: string): string {
    return text.replace(/:(8080|8443|8081|7500|4599|4566)\b/g, (_, port: string) => `:${this.#ports.get(port)}`);
  }
}

function own(path: string, { user: { uid, gid } }: Typist): void {
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid);
}

function script(path: string, text: string): void {
  writeFileSync(path, text);
  chmodSync(path, 0o755);
}

let packed: Promise<string> | undefined;

/** The client library's package, made once for all shells of a process. */
function clientPackage(): Promise<string> {
  packed ??= (async () => {
    const dir = mkdtempSync(join(tmpdir(), 'kms-docs-client-'));
    process.once('exit', () => rmSync(dir, { recursive: true, force: true }));
    await buildClient(join(dir, 'client'));
    return packClient(join(dir, 'client'), dir);
  })();
  return packed;
}

/** The processes of a session that have not ended. */
export function inSession(session: number): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => {
      if (!/^[0-9]+$/.test(name)) return false;
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
        const [state, , , of] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        return Number(of) === session && state !== 'Z';
      } catch {
        // It has ended meanwhile.
        return false;
      }
    })
    .map(Number);
}

function signal(group: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, name);
  } catch {
    return false;
  }
}

function isAlive(group: number): boolean {
  return signal(group, 0);
}
