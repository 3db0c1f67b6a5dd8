// A PostgreSQL of its own for a test, from the system's package, in a temporary directory and on a Unix socket; and a
// standby of it.
import { execFileSync, spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Client, type QueryResult } from 'pg';
import type { PostgresConfig } from '../../src/store/shared/postgres-connections.ts';

const versions = '/usr/lib/postgresql';

/** Where its programs are; undefined where it is not installed. */
export function postgresPrograms(): string | undefined {
  if (!existsSync(versions)) return undefined;
  const [newest] = readdirSync(versions).sort((a, b) => Number(b) - Number(a));
  const programs = join(versions, newest ?? '', 'bin');
  return existsSync(join(programs, 'initdb')) ? programs : undefined;
}

/** Whom to run it as, since it refuses to run as root. */
export function postgresUser(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const number = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: number('-u'), gid: number('-g') };
}

export interface PostgresOptions {
  /** On 127.0.0.1 too, where one is given. */
  readonly port?: number;
  /** Such as `ssl=on`. */
  readonly settings?: readonly string[];
  /** By name, in the data directory, for the server alone. */
  readonly files?: Readonly<Record<string, string>>;
  /** Whose standby it is. */
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

  /** Makes a file or directory that of the user whom the server runs as. */
  own(path: string): void {
    const { uid, gid } = this.#user;
    if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid);
  }

  /** A file in the data directory; it counts from the next start or `reload` on. */
  write(name: string, text: string): void {
    const path = join(this.data, name);
    writeFileSync(path, text, { mode: 0o600 });
    this.own(path);
  }

  reload(): void {
    this.#run('pg_ctl', ['-D', this.data, 'reload']);
  }

  /** For `pg`. */
  get config() {
    return { host: this.dir, port: this.port, user: 'kms', database: 'postgres' };
  }

  /** For the product. */
  get address(): PostgresConfig {
    const { host, port, user, database } = this.config;
    return { hosts: [{ host, port, tls: false }], user, database };
  }

  createDatabase(name: string): void {
    this.#run('createdb', ['-h', this.dir, '-p', String(this.port), '-U', 'kms', name]);
  }

  /** The address of a new database, for `--store`. */
  newDatabase(): string {
    const name = `kms${++this.#databases}`;
    this.createDatabase(name);
    return `postgres://kms@/${name}?host=${encodeURIComponent(this.dir)}`;
  }

  get data(): string {
    return join(this.dir, 'data');
  }

  /** Where its standby connects to, under the name that `synchronous_standby_names` may have. */
  get #standbyUrl(): string {
    return `host=${this.dir} port=${this.port} user=kms dbname=postgres application_name=standby`;
  }

  start(): void {
    const settings = [`unix_socket_directories=${this.dir}`, 'shared_buffers=16MB', ...this.#settings];
    const options = settings.map((setting) => `-c ${setting}`).join(' ');
    this.#run('pg_ctl', ['-D', this.data, '-w', '-l', join(this.dir, 'log'), '-o', options, 'start']);
  }

  /** As a crash does, or in order. */
  stop(mode: 'immediate' | 'fast' = 'immediate'): void {
    this.#run('pg_ctl', ['-D', this.data, '-w', '-m', mode, 'stop']);
  }

  /** A standby becomes what is written to. */
  promote(): void {
    this.#run('pg_ctl', ['-D', this.data, '-w', 'promote']);
  }

  /** On a connection of its own, which may write in any case. */
  async query(text: string, database = 'postgres'): Promise<QueryResult> {
    const client = new Client({ ...this.config, database, options: '-c default_transaction_read_only=off' });
    await client.connect();
    try {
      return await client.query(text);
    } finally {
      await client.end();
    }
  }

  /** All connections but its own. */
  async cutConnections(): Promise<void> {
    const clients = `backend_type = 'client backend' AND pid <> pg_backend_pid()`;
    await this.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${clients}`);
  }

  /** Looks again and again until the query answers a row. */
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
      // What it leaves running must not keep a pipe open.
      stdio: program === 'pg_ctl' ? 'ignore' : 'pipe',
    });
    if (status !== 0) throw new Error(`${program}: ${stdout} ${stderr}`);
  }
}
