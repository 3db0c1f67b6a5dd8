// A PostgreSQL server for a test, from the system's package, in a temporary directory and on a Unix socket; and a
// standby of it.
import { execFileSync, spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Client, type QueryResult } from 'pg';
import type { PostgresConfig } from '../../src/store/shared/postgres-connections.ts';

const versions = '/usr/lib/postgresql';

/** Directory of its programs; undefined if it is not installed. */
export function postgresPrograms(): string | undefined {
  if (!existsSync(versions)) return undefined;
  const [newest] = readdirSync(versions).sort((a, b) => Number(b) - Number(a));
  const programs = join(versions, newest ?? '', 'bin');
  return existsSync(join(programs, 'initdb')) ? programs : undefined;
}

/** The user to run it as, since it refuses to run as root. */
export function postgresUser(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const number = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: number('-u'), gid: number('-g') };
}

export interface PostgresOptions {
  /** Listens on this port of 127.0.0.1, too. */
  readonly port?: number;
  /** Such as `ssl=on`. */
  readonly settings?: readonly string[];
  /** Files in the data directory by name, readable only by the server. */
  readonly files?: Readonly<Record<string, string>>;
  /** The primary that it is a standby of. */
  readonly primary?: Postgres;
}

export class Postgres {
  readonly dir = mkdtempSync(join(tmpdir(), 'kms-postgres-'));
  readonly port: number;
  readonly #programs: string;
  readonly #user = postgresUser();
  #databases = 0;
  readonly #settings: readonly string[];

  constructor(programs: string, { port, settings = [], files = {}, primary }: PostgresOptions = {}) {
    this.#programs = programs;
    this.port = port ?? 5432;
    this.#settings = [`listen_addresses=${port === undefined ? '' : '127.0.0.1'}`, `port=${this.port}`, ...settings];
    this.own(this.dir);
    const { data } = this;
    const copied = primary && ['-R', '-X', 'stream', '-c', 'fast', '-d', primary.#standbyUrl];
    if (copied) this.#run('pg_basebackup', ['-D', data, ...copied]);
    else this.#run('initdb', ['-D', data, '-U', 'kms', '-A', 'trust', '-E', 'UTF8', '--locale=C']);
    for (const [name, text] of Object.entries(files)) this.write(name, text);
    this.start();
  }

  /** Gives a file or directory to the server's user. */
  own(path: string): void {
    const { uid, gid } = this.#user;
    if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid);
  }

  /** Writes a file to the data directory; it takes effect at the next start or `reload`. */
  write(name: string, text: string): void {
    const path = join(this.data, name);
    writeFileSync(path, text, { mode: 0o600 });
    this.own(path);
  }

  reload(): void {
    this.#run('pg_ctl', ['-D', this.data, 'reload']);
  }

  /** Connection options for `pg`. */
  get config() {
    return { host: this.dir, port: this.port, user: 'kms', database: 'postgres' };
  }

  /** Connection options for the product. */
  get address(): PostgresConfig {
    const { host, port, user, database } = this.config;
    return { hosts: [{ host, port, tls: false }], user, database };
  }

  createDatabase(name: string): void {
    this.#run('createdb', ['-h', this.dir, '-p', String(this.port), '-U', 'kms', name]);
  }

  /** The URL of a new database, for `--store`. */
  newDatabase(): string {
    const name = `kms${++this.#databases}`;
    this.createDatabase(name);
    return `postgres://kms@/${name}?host=${encodeURIComponent(this.dir)}`;
  }

  get data(): string {
    return join(this.dir, 'data');
  }

  /** Connection of its standby, under the name used in `synchronous_standby_names`. */
  get #standbyUrl(): string {
    return `host=${this.dir} port=${this.port} user=kms dbname=postgres application_name=standby`;
  }

  start(): void {
    const settings = [`unix_socket_directories=${this.dir}`, 'shared_buffers=16MB', ...this.#settings];
    const options = settings.map((setting) => `-c ${setting}`).join(' ');
    this.#run('pg_ctl', ['-D', this.data, '-w', '-l', join(this.dir, 'log'), '-o', options, 'start']);
  }

  /** Stops it like a crash (`immediate`), or in order (`fast`). */
  stop(mode: 'immediate' | 'fast' = 'immediate'): void {
    this.#run('pg_ctl', ['-D', this.data, '-w', '-m', mode, 'stop']);
  }

  /** Makes a standby the primary. */
  promote(): void {
    this.#run('pg_ctl', ['-D', this.data, '-w', 'promote']);
  }

  /** Runs a query on a new connection, which may always write. */
  async query(text: string, database = 'postgres'): Promise<QueryResult> {
    const client = new Client({ ...this.config, database, options: '-c default_transaction_read_only=off' });
    await client.connect();
    try {
      return await client.query(text);
    } finally {
      await client.end();
    }
  }

  /** Terminates all connections but its own. */
  async cutConnections(): Promise<void> {
    const clients = `backend_type = 'client backend' AND pid <> pg_backend_pid()`;
    await this.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${clients}`);
  }

  /** Polls until the query returns a row. */
  async until(text: string): Promise<void> {
    for (const end = Date.now() + 30_000; (await this.query(text)).rowCount === 0; await wait(10)) {
      if (Date.now() > end) throw new Error(`never: ${text}`);
    }
  }

  end(): void {
    if (existsSync(join(this.data, 'postmaster.pid'))) this.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }

  #run(program: string, args: readonly string[]): void {
    const { status, stdout, stderr } = spawnSync(join(this.#programs, program), args, {
      ...this.#user,
      cwd: this.dir,
      encoding: 'utf8',
      // Background processes must not keep a pipe open.
      stdio: program === 'pg_ctl' ? 'ignore' : 'pipe',
    });
    if (status !== 0) throw new Error(`${program}: ${stdout} ${stderr}`);
  }
}
