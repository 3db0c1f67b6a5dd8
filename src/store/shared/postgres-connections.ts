// Connections to a PostgreSQL at one or several addresses; the one that accepts writes is used and remembered. Failures
// are explained in words that an operator can act upon: names stand only in the hint, which is for the log and for
// users at the machine, and no secret stands anywhere.
import type { ConnectionOptions } from 'node:tls';
import type { Client, ClientConfig } from 'pg';
import { KmsError, systemRefusal } from '../../errors.ts';
import { EngineError, type EngineFault } from './engine.ts';
import { prepareSession } from './postgres-session.ts';
import { guardSignIn } from './postgres-sign-in.ts';

export interface PostgresHost {
  /** A host name, an address, or the directory of a Unix socket. */
  readonly host: string;
  readonly port: number;
  /** Whether to connect by TLS. */
  readonly tls: boolean;
}

export interface PostgresConfig {
  /** Tried in this order. */
  readonly hosts: readonly PostgresHost[];
  readonly user: string;
  readonly database: string;
  /** Called for each connection, so that a new password counts at once; undefined = there is none. */
  password?(host: PostgresHost): Promise<string | undefined>;
  /** Trusted authorities and own certificate for TLS; called for each connection too. */
  tls?(): Promise<ConnectionOptions>;
}

/** The part of a client that runs statements. */
export type Query = Pick<Client, 'query'>;

/** Connections for work that takes no turn. */
const mostSpare = 4;

const warned = new WeakSet<Client>();

/**
 * Whether the server has sent a warning on a connection. Of our statements only a commit can cause one: a commit whose
 * wait for the standby was cancelled (`pg_cancel_backend`) is reported as done, with a warning that the standby may
 * lack it.
 */
export function hasWarned(client: Client): boolean {
  return warned.has(client);
}

const histories = new WeakMap<Client, string>();

/** The history that the server of a connection writes, fixed for as long as the connection lasts. */
export function historyOf(client: Client): string {
  return histories.get(client) ?? '';
}

/**
 * The identifier of the cluster and its timeline, which changes with a promotion and with a point-in-time recovery. The
 * timeline is taken from the current WAL position: `pg_control_checkpoint()` shows the former one until the next
 * checkpoint. Any user may ask. Empty if the server, perhaps another product, does not support the query.
 */
async function readHistory(client: Client): Promise<string> {
  try {
    const { rows } = await client.query(
      `SELECT system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) AS history
        FROM pg_control_system()`,
    );
    return String(rows[0]?.history ?? '');
  } catch (error) {
    if (error instanceof Error && 'severity' in error && error.severity === 'ERROR') return '';
    throw error;
  }
}

export class PostgresConnections {
  readonly #config: PostgresConfig;
  readonly #settings: ClientConfig;
  #at = 0;
  #isClosed = false;
  /** Spare connections, shared by all work that takes no turn. */
  #used = 0;
  readonly #spare: Client[] = [];
  readonly #placeOf = new WeakMap<Client, PostgresHost>();
  readonly #waiting: (() => void)[] = [];

  /** `settings` apply to all connections, at every address. */
  constructor(config: PostgresConfig, settings: ClientConfig) {
    this.#config = config;
    this.#settings = settings;
  }

  /**
   * Opens a connection: tries each address once, from the last good one on. Throws `EngineError` with the reason of
   * each.
   */
  async open(more: ClientConfig = {}): Promise<Client> {
    const { hosts } = this.#config;
    const failures: EngineError[] = [];
    for (let left = hosts.length; left > 0; left--) {
      const place = hosts[this.#at];
      if (!place) break;
      try {
        const client = await this.#connect(place, more);
        this.#placeOf.set(client, place);
        return client;
      } catch (cause) {
        failures.push(faultOfPlace(place, cause));
        if (place === hosts[this.#at]) this.#at = (this.#at + 1) % hosts.length;
      }
    }
    // Open connections elsewhere may lead to a server that is no longer the primary.
    this.#dropSpare();
    throw together(failures);
  }

  async #connect(place: PostgresHost, more: ClientConfig): Promise<Client> {
    const { host, port } = place;
    const { user, database, tls } = this.#config;
    const password = await this.#config.password?.(place);
    const ssl = place.tls && ((await tls?.()) ?? true);
    const { default: pg } = await import('pg');
    // Otherwise pg looks for one itself. No account has this password, so the server shows whether it asks for one at
    // all.
    const given = (): string => password ?? '\x01';
    const settings = { ...this.#settings, ...more, enableChannelBinding: place.tls };
    const client = new pg.Client({ ...settings, host, port, user, database, password: given, ssl });
    guardSignIn(client, place.tls);
    // Pending queries get the error themselves.
    client.on('error', () => this.#forget(client));
    client.on('end', () => this.#forget(client));
    try {
      await client.connect();
      const isStandby = await prepareSession(client);
      client.on('notice', () => warned.add(client));
      // A standby could show stale data.
      if (isStandby) throw failed(place, standby, undefined, 'read-only');
      histories.set(client, await readHistory(client));
      return client;
    } catch (error) {
      client.end().catch(() => {});
      if (password === undefined && codeOf(error) === '28P01') throw failed(place, noPassword, error);
      throw error;
    }
  }

  /**
   * Runs on a connection of its own, which is used again unless the database failed. Throws `EngineError`, and the
   * errors of `run` itself.
   */
  async reading<R>(run: (client: Client) => Promise<R>): Promise<R> {
    const client = await this.#take();
    let isSound = true;
    try {
      return await run(client);
    } catch (error) {
      isSound = isOwn(error) && !warned.has(client);
      throw isOwn(error) ? error : faultOf(error);
    } finally {
      if (isSound && this.#isOfUse(client)) this.#spare.push(client);
      else client.end().catch(() => {});
      this.#release();
    }
  }

  /** The same in a transaction, which is durable when this resolves. */
  writing<R>(run: (client: Client) => Promise<R>): Promise<R> {
    return this.reading(async (client) => {
      await client.query('BEGIN');
      await client.query('SET LOCAL synchronous_commit = on');
      const result = await run(client).catch(async (error: unknown) => {
        if (isOwn(error)) await client.query('ROLLBACK');
        throw error;
      });
      const { command } = await client.query('COMMIT');
      if (command !== 'COMMIT') throw new EngineError('retry');
      if (hasWarned(client)) throw new EngineError('in-doubt');
      return result;
    });
  }

  async #take(): Promise<Client> {
    if (this.#isClosed) throw new EngineError('unreachable');
    if (this.#used >= mostSpare) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#used++;
    try {
      for (let client = this.#spare.pop(); client; client = this.#spare.pop()) {
        if (this.#isOfUse(client)) return client;
        client.end().catch(() => {});
      }
      return await this.open();
    } catch (error) {
      this.#release();
      throw error;
    }
  }

  /**
   * False for a connection to an address that others were found better than: that server may still believe itself the
   * primary.
   */
  #isOfUse(client: Client): boolean {
    return !this.#isClosed && this.#placeOf.get(client) === this.#config.hosts[this.#at];
  }

  /** Hands the connection's slot to the next waiter, if any. */
  #release(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#used--;
  }

  #forget(client: Client): void {
    const at = this.#spare.indexOf(client);
    if (at >= 0) this.#spare.splice(at, 1);
  }

  #dropSpare(): void {
    for (const client of this.#spare.splice(0)) client.end().catch(() => {});
  }

  /** Connections in use end when their work is done. */
  close(): void {
    this.#isClosed = true;
    this.#dropSpare();
  }
}

type Said = readonly [reason: string, hint: string];

const passwordHint = 'set PGPASSWORD, or name a file that holds it with --store-password-file';
const noPassword: Said = ['it asks for a password, and none is given', passwordHint];
const standby: Said = ['it is a standby', 'it serves once this one is promoted, or name the primary too'];
const untrusted: Said = [
  "the server's certificate is not from an authority that is trusted",
  'name the authority that signed it, PEM, with sslrootcert=FILE in the URL',
];
const silent: Said = ['it does not answer', 'see that it runs, and that no firewall is in between'];
const otherTables: Said = [
  'the tables there are not those of an appliance',
  'name the database that has it, or put its tables back; nothing else may be in it',
];
const unknownName: Said = ['the name of its host is not known', 'see that the name is right and that it resolves'];

/** By SQLSTATE, or by Node's error code. */
const said: Readonly<Record<string, Said>> = {
  '28P01': ['the password is wrong', passwordHint],
  '28000': ['it does not let this user in', "see the server's log, its pg_hba.conf and whether the user exists"],
  '3D000': ['there is no such database', 'make one that belongs to this user: CREATE DATABASE … OWNER …'],
  '25P03': ['this node stood still in its turn', 'see whether its machine is overloaded, or was paused'],
  '42703': otherTables,
  '42804': otherTables,
  '42P01': otherTables,
  '57014': ['it did not answer in time', 'see there what holds a lock for long, and how busy it is'],
  '3F000': ['no schema is on its search_path', 'set one for the user there: ALTER ROLE … SET search_path = public'],
  '42501': ['the user lacks a right', 'make the user the owner of the database'],
  '53300': ['it has no connection left', 'raise max_connections there, or end what else is connected'],
  '57P03': ['it is starting, or stopping', 'it goes on by itself once that is over'],
  CERT_HAS_EXPIRED: ["the server's certificate has expired", 'give the server a new one'],
  CERT_NOT_YET_VALID: ["the server's certificate is not valid yet", 'set the clocks'],
  ERR_TLS_CERT_ALTNAME_INVALID: [
    "the server's certificate is for another host",
    'connect by a name that the certificate has, or give the server another one',
  ],
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  CERT_SIGNATURE_FAILURE: untrusted,
  ECONNREFUSED: ['nothing listens there', 'see that PostgreSQL runs, and its listen_addresses and port'],
  ENOENT: ['there is no such socket', 'see that PostgreSQL runs, and its unix_socket_directories and port'],
  EACCES: ['this process may not use its socket', "run as a user that may, or see the socket's mode"],
  ENOTFOUND: unknownName,
  EAI_AGAIN: unknownName,
  ETIMEDOUT: silent,
  EHOSTUNREACH: silent,
  ENETUNREACH: silent,
};

/** For errors without a code. */
const saidByText: readonly (readonly [text: RegExp, said: Said])[] = [
  [/does not support SSL/, ['the server does not do TLS', 'give it a certificate and set ssl = on there']],
  [/time ?out/i, silent],
];

/** For a server's rejection of our own certificate. */
const alert: Said = ['it breaks off the TLS connection', "see the server's log, and that it takes the sslcert given"];

function faultOfPlace(place: PostgresHost, cause: unknown): EngineError {
  if (cause instanceof EngineError) return cause;
  if (cause instanceof KmsError) return failed(place, [cause.message, cause.hint ?? 'see the message'], cause);
  return failed(place, wordsOf(cause), cause);
}

/** Whether the error is not the database's: a missing file, or an error of the product itself. */
export function isOwn(error: unknown): boolean {
  return error instanceof KmsError || codeOf(error) === 'ENOENT';
}

/** Whether the database reported that it did not do the work, on a connection that stays usable. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && 'severity' in error && error.severity === 'ERROR';
}

const faults: Readonly<Record<string, EngineFault>> = {
  '25006': 'read-only',
  '53100': 'full',
  '40001': 'retry',
  '40P01': 'retry',
  '23505': 'retry',
  '42P07': 'retry',
};

/** The fault for an error on a connection that was open. */
export function faultOf(error: unknown): KmsError {
  if (error instanceof KmsError) return error;
  return new EngineError(faults[codeOf(error)] ?? 'unreachable', error, refusalOf(error));
}

/** Why the server refuses a statement on a connection that it accepted, if more is known. */
function refusalOf(error: unknown): { readonly reason: string; readonly hint: string } | undefined {
  const [reason, hint] = knownOf(error) ?? [];
  return reason === undefined || hint === undefined ? undefined : { reason, hint };
}

function wordsOf(cause: unknown): Said {
  // A name with several addresses fails with all their errors; the first one stands for them.
  const [error] = cause instanceof AggregateError ? cause.errors : [cause];
  const code = codeOf(error);
  const found = knownOf(error);
  if (found) return found;
  if (/^ERR_SSL_.*ALERT/.test(code)) return alert;
  const [refusal, advice] = systemRefusal(error) ?? [];
  if (refusal !== undefined && advice !== undefined) return [refusal, advice];
  const what = code === '' ? '' : ` (${code})`;
  return [`it breaks off the connection${what}`, "see the server's log"];
}

function knownOf(error: unknown): Said | undefined {
  const text = error instanceof Error ? error.message : '';
  return said[codeOf(error)] ?? saidByText.find(([pattern]) => pattern.test(text))?.[1];
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

function failed(
  { host, port }: PostgresHost,
  [reason, hint]: Said,
  cause?: unknown,
  fault: EngineError['fault'] = 'unreachable',
): EngineError {
  const at = host.startsWith('/') ? `${host}/.s.PGSQL.${port}` : `${host}:${port}`;
  return new EngineError(fault, cause, { reason, hint: `${at}: ${hint}` });
}

function together(failures: readonly EngineError[]): EngineError {
  const [first, ...more] = failures;
  if (!first) throw new KmsError('internal', 'a database has at least one place');
  if (more.length === 0) return first;
  const reason = [...new Set(failures.map((failure) => failure.reason))].join('; ');
  const hint = failures.map((failure) => failure.hint).join('; ');
  // If one server is a standby, the question is which one is the primary.
  const { fault } = failures.find((failure) => failure.fault === 'read-only') ?? first;
  return new EngineError(fault, first.cause, { reason, hint });
}
