// A PostgreSQL of its own for a test, from the system's package, in a temporary directory and on a Unix socket.
import { execFileSync, spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const versions = '/usr/lib/postgresql';

/** Where its programs are; undefined where it is not installed. */
export function postgresPrograms(): string | undefined {
  if (!existsSync(versions)) return undefined;
  const [newest] = readdirSync(versions).sort((a, b) => Number(b) - Number(a));
  const programs = join(versions, newest ?? '', 'bin');
  return existsSync(join(programs, 'initdb')) ? programs : undefined;
}

/** It refuses to run as root. */
function user(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const number = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: number('-u'), gid: number('-g') };
}

export class Postgres {
  readonly dir = mkdtempSync(join(tmpdir(), 'kms-postgres-'));
  readonly #programs: string;
  readonly #user = user();

  constructor(programs: string) {
    this.#programs = programs;
    const { uid, gid } = this.#user;
    if (uid !== undefined && gid !== undefined) chownSync(this.dir, uid, gid);
    this.#run('initdb', ['-D', join(this.dir, 'data'), '-U', 'kms', '-A', 'trust', '-E', 'UTF8', '--locale=C']);
    this.start();
  }

  /** For `pg`. */
  get config() {
    return { host: this.dir, user: 'kms', database: 'postgres' };
  }

  start(): void {
    const options = `-c listen_addresses= -c unix_socket_directories=${this.dir} -c shared_buffers=16MB`;
    this.#run('pg_ctl', ['-D', join(this.dir, 'data'), '-w', '-l', join(this.dir, 'log'), '-o', options, 'start']);
  }

  /** As a crash does. */
  stop(): void {
    this.#run('pg_ctl', ['-D', join(this.dir, 'data'), '-w', '-m', 'immediate', 'stop']);
  }

  end(): void {
    this.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }

  #run(program: string, args: readonly string[]): void {
    const { status, stdout, stderr } = spawnSync(join(this.#programs, program), args, {
      ...this.#user,
      cwd: this.dir,
      encoding: 'utf8',
      // What it leaves running must not keep a pipe open.
      stdio: program === 'pg_ctl' ? 'ignore' : 'pipe',
    });
    if (status !== 0) throw new Error(`${program}: ${stdout} ${stderr}`);
  }
}
