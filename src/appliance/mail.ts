// Services behind logins, invites and password resets: a thread that hashes passwords, and mail over SMTP if the
// operator has configured it. The connection to the mail server is encrypted unless the address says otherwise or the
// server is on this machine, because the mails grant access.
import type { createTransport, Transporter } from 'nodemailer';
import type { World } from '../core/context.ts';
import { defaultLifetimes, type Lifetimes, type Mail, type Mailer } from '../core/links.ts';
import { KmsError } from '../errors.ts';
import { type People, peopleOf } from '../http/appliance-port.ts';
import { isLoopbackHost } from '../model/hosts.ts';
import { trustSystem } from '../platform/authorities.ts';
import { startWorker } from '../platform/program-files.ts';
import type { PasswordWork } from '../platform/threads/jobs.ts';
import { type PasswordWorker, passwordWorker } from '../platform/threads/passwords.ts';
import { type NotifySettings, webhookNotifier } from './notifier.ts';
import { oidcClient } from './oidc-client.ts';
import { tokenVerifier } from './token-verifier.ts';

export interface PeopleSettings {
  readonly lifetimes?: Partial<Lifetimes>;
  readonly mail?: MailSettings;
  /** The webhook that tells approvers. */
  readonly notify?: NotifySettings;
}

/** The first password starts the thread; `close` ends it. */
export class ServedPeople {
  readonly #hasher: PasswordWorker;
  readonly #now: () => number;
  #current: People;

  constructor(world: World, settings: PeopleSettings = {}, nodes?: () => number) {
    this.#now = world.now;
    const start = () => startWorker({ kind: 'passwords' } satisfies PasswordWork);
    this.#hasher = passwordWorker({ start, random: world.random });
    this.#current = peopleOf(world, {
      hasher: this.#hasher,
      oidc: oidcClient(world),
      tokens: tokenVerifier(world),
      nodes,
    });
    this.settings = settings;
  }

  get current(): People {
    return this.#current;
  }

  /** New settings apply to later requests. */
  set settings({ lifetimes, mail, notify }: PeopleSettings) {
    const { mailer: _, notifier: __, ...others } = this.#current;
    this.#current = {
      ...others,
      lifetimes: { ...defaultLifetimes, ...lifetimes },
      ...(mail && { mailer: smtpMailer(mail) }),
      ...(notify && { notifier: webhookNotifier(notify, this.#now) }),
    };
  }

  close(): Promise<void> {
    return this.#hasher.close();
  }
}

export interface MailSettings {
  readonly host: string;
  readonly port: number;
  /**
   * `implicit`: TLS from the first byte. `required`: STARTTLS or no connection. `off`: in clear, whatever the server
   * offers.
   */
  readonly tls: 'implicit' | 'required' | 'off';
  readonly user?: string;
  readonly password?: string;
  /** The sender's address. */
  readonly from: string;
  /** PEM of the authorities to trust instead of the system's. */
  readonly ca?: string;
}

const form = 'expected smtp://[user:password@]host[:port][?tls=off], or smtps://… for TLS from the first byte';

/**
 * Settings from `smtp://` (STARTTLS, port 587) or `smtps://` (TLS, port 465). User and password are percent-encoded.
 */
export function parseSmtpUrl(text: string, from: string): MailSettings {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const wrong = (hint: string): KmsError => new KmsError('invalid', 'the SMTP address makes no sense', { hint });
  if (!url || !/^smtps?:$/.test(url.protocol) || url.hostname === '') throw wrong(form);
  if (!/^\/?$/.test(url.pathname) || url.hash !== '') throw wrong(form);
  const tls = url.searchParams.get('tls');
  if ([...url.searchParams.keys()].some((name) => name !== 'tls') || (tls !== null && tls !== 'off')) throw wrong(form);
  const implicit = url.protocol === 'smtps:';
  if (implicit && tls === 'off') throw wrong('smtps:// is TLS: leave out ?tls=off, or use smtp://');
  const plain = tls === 'off' || isLoopbackHost(url.hostname);
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? (implicit ? 465 : 587) : Number(url.port),
    tls: implicit ? 'implicit' : plain ? 'off' : 'required',
    from,
    ...(url.username === '' ? {} : { user: decoded(url.username, wrong) }),
    ...(url.password === '' ? {} : { password: decoded(url.password, wrong) }),
  };
}

function decoded(part: string, wrong: (hint: string) => KmsError): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw wrong('user and password are percent-encoded');
  }
}

/** In milliseconds: a mail server that hangs must not block its callers. */
const timeouts = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 30_000 };
/** Milliseconds for a whole mail: a server that goes on saying something is never quiet for as long as a timeout. */
const wholeTimeout = 120_000;

/** Mails that are sent at once, each on a connection, and those that may wait for one of them to end. */
const most = { atOnce: 32, waiting: 4096 };

export function smtpMailer(settings: MailSettings, timeout = wholeTimeout): Mailer {
  const { host, port, from } = settings;
  let transport: Promise<Transporter> | undefined;
  const turns = new Turns();
  return {
    send: (mail) => turns.run(() => sendOne(mail)),
  };

  async function sendOne({ to, subject, text }: Mail): Promise<void> {
    transport ??= connection(settings);
    const signal = AbortSignal.timeout(timeout);
    try {
      // An object, so that an address is never parsed as a list of addresses.
      const mail = { from, to: { name: '', address: to }, subject, text, signal };
      await (await transport).sendMail(mail);
    } catch (cause) {
      const why = signal.aborted ? ` within ${timeout} ms` : reason(cause);
      throw new KmsError('unavailable', `the mail server ${host}:${port} did not accept a mail${why}`);
    }
  }
}

/** A slow server would otherwise have a connection for each mail that anybody causes. */
class Turns {
  #underWay = 0;
  readonly #waiting: (() => void)[] = [];

  async run(work: () => Promise<void>): Promise<void> {
    if (this.#underWay < most.atOnce) this.#underWay++;
    else {
      if (this.#waiting.length >= most.waiting) throw new KmsError('unavailable', 'too many mails are waiting');
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    try {
      await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#underWay--;
    }
  }
}

/** In bytes, for one mail: a server's answers have a few kilobytes. */
const mostSaid = 64 * 1024;

/** A connection of the library, with the method that gets what the server says. */
interface Listening {
  _onData(chunk: Uint8Array): void;
  /** Gives the connection up, and what was not worked on yet. */
  _onResponseTooLarge(): void;
}

/**
 * The library bounds each answer, and not their number: it works on empty lines one by one, also after the connection
 * is closed, and slower the more there are.
 */
function boundAnswers(connection: Listening): void {
  const heard = new WeakMap<Listening, number>();
  const { _onData } = connection;
  if (typeof _onData !== 'function' || typeof connection._onResponseTooLarge !== 'function') {
    throw new KmsError('internal', 'the mail library has changed: answers of mail servers are not bounded');
  }
  connection._onData = function (this: Listening, chunk) {
    const bytes = (heard.get(this) ?? 0) + chunk.length;
    heard.set(this, bytes);
    if (bytes > mostSaid) this._onResponseTooLarge();
    else _onData.call(this, chunk);
  };
}

let library: Promise<typeof createTransport> | undefined;

/** Loads the library with the first mail. */
async function loaded(): Promise<typeof createTransport> {
  const [{ createTransport }, { default: Connection }] = await Promise.all([
    import('nodemailer'),
    import('nodemailer/lib/smtp-connection'),
  ]);
  // Cast: the methods are there, and not declared.
  boundAnswers(Connection.prototype as unknown as Listening);
  return createTransport;
}

async function connection({ host, port, tls, user, password, ca }: MailSettings): Promise<Transporter> {
  library ??= loaded();
  const createTransport = await library;
  if (ca === undefined && tls !== 'off') trustSystem();
  return createTransport({
    host,
    port,
    secure: tls === 'implicit',
    requireTLS: tls === 'required',
    ignoreTLS: tls === 'off',
    tls: { minVersion: 'TLSv1.2', ...(ca === undefined ? {} : { ca }) },
    ...(user === undefined ? {} : { auth: { user, pass: password ?? '' } }),
    ...timeouts,
    // Mails are texts made here: nothing in them may refer to files or URLs.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
}

/** Only the kind of failure: the server's words may repeat an address, or the mail. */
function reason(cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  const status = cause instanceof Error && 'responseCode' in cause ? cause.responseCode : undefined;
  const known = [code, status].filter((each) => typeof each === 'string' || typeof each === 'number');
  return known.length === 0 ? '' : ` (${known.join(' ')})`;
}
