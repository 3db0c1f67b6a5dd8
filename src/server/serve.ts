// An appliance on the network and on the local socket. The port is taken first, so that a conflict shows before
// anything is created; early requests wait until the appliance is open.

import type { IncomingMessage, Server } from 'node:http';
import { resolve } from 'node:path';
import { HeldAppliance, type OpenAppliance } from '../appliance/appliance.ts';
import { type Initialised, initAppliance } from '../appliance/init.ts';
import type { ApplianceConfig, ApplianceOptions } from '../appliance/open-appliance.ts';
import { hasTakenOver, Standby } from '../backup/standby.ts';
import { standbyAnswers } from '../backup/standby-answers.ts';
import type { KeySources } from '../custody/key-sources.ts';
import { tangAddresses } from '../dialects/tang/limits.ts';
import { KmsError, systemError } from '../errors.ts';
import { type ApiRequest, emptyBody } from '../http/request.ts';
import type { Answer, Reply } from '../http/request-log.ts';
import type { Outcome } from '../http/respond.ts';
import { dataDirState, needPrivateDirectory } from '../platform/data-dir.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import { hardenProcess } from '../platform/hardening.ts';
import { type CryptoChoice, startCrypto } from '../platform/native-crypto.ts';
import { connectionsFor, judgeLimits, processLimits } from '../platform/process-limits.ts';
import { type Hold, holdOf, needNoUpgrade, stayOut } from '../upgrade/journal.ts';
import { AnswerBudget } from './answer-room.ts';
import { BodyBudget } from './body-budget.ts';
import { type Dialect, ownDialect, tangDialect, vaultDialect } from './http-refusals.ts';
import {
  clientAddress,
  endServer,
  type HttpLimits,
  httpServer,
  type RequestOrigin,
  takeForwardedHost,
} from './http-server.ts';
import { giveMemoryBack } from './idle-memory.ts';
import { aheadBudget } from './in-turn.ts';
import {
  type Listening,
  type ListenOptions,
  listening,
  openSocket,
  portOf,
  takePort,
  warnOfCertificate,
} from './listen.ts';
import { createLog, type Logger } from './log.ts';
import { Reloader, type Reread } from './reload.ts';

/** Configuration of a server and its appliance. Each service gets its own part as one object. */
export interface ServeConfig extends ListenOptions, ApplianceConfig {
  /** `HOST:PORT` for software that speaks Vault transit. Absent: none. */
  readonly transitListen?: string | undefined;
  /** `HOST:PORT` for clients of Tang. Absent: none. */
  readonly tangListen?: string | undefined;
  /** Hosts of the first tenant, if the directory is initialised. */
  readonly hosts?: readonly string[] | undefined;
  readonly logLevel?: string | undefined;
  /** Implementation of the expensive primitives. Default: `node`. */
  readonly crypto?: CryptoChoice | undefined;
}

/** A data directory that is missing, empty or unfinished is initialised first. */
export interface ServeOptions
  extends ServeConfig,
    Pick<ApplianceOptions, 'sources' | 'space' | 'segments' | 'held' | 'onWaiting' | 'stopping' | 'uptime'> {
  /** Limits against slow clients. Default: the usual ones. */
  readonly limits?: Partial<HttpLimits> | undefined;
  /** Called at once if the directory was initialised, with values that are shown nowhere else. */
  readonly onInitialised?: (made: Initialised) => void | Promise<void>;
}

export interface Serving {
  /** The address listened on. */
  readonly address: string;
  /** The address that clients use. */
  readonly url: string;
  /** Address for software that speaks Vault transit; undefined without one. */
  readonly transitAddress: string | undefined;
  /** Address for clients of Tang; undefined without one. */
  readonly tangAddress: string | undefined;
  /** Throws `sealed` while it is sealed. */
  readonly appliance: OpenAppliance;
  /**
   * The page on which the first administrator creates their user; undefined if there is a user already, or it is not
   * clear in which tenant.
   */
  readonly setUpUrl: string | undefined;
  /** Why it is sealed at the start; undefined if it is open. */
  readonly sealed: KmsError | undefined;
  /** The refusal for clients while an upgrade tries this server; undefined if none is under way. */
  readonly held: KmsError | undefined;
  /**
   * Reads the certificate and key again, for new connections; returns whether TLS is in use. An unusable pair changes
   * nothing.
   */
  reloadTls(): Promise<boolean>;
  /**
   * Applies the configuration that `read` returns, as far as a running server can, and rereads the certificate. If
   * either cannot be read nothing changes. The log says what was done. Returns false if nothing was applied.
   */
  reload(read: () => Promise<Reread>): Promise<boolean>;
  /** Stops accepting, finishes requests under way, makes everything durable and releases the directory. */
  close(): Promise<void>;
}

export async function serve(options: ServeOptions): Promise<Serving> {
  const server = await openServer(options);
  try {
    return await server.begin();
  } catch (error) {
    await server.close();
    throw error;
  }
}

/**
 * A standby on the network and on its socket, which becomes the appliance's server there when it takes over. After a
 * takeover it starts as the server.
 */
interface StandingBy extends Pick<Serving, 'address' | 'url' | 'reloadTls' | 'close'> {
  /** Whether it took over earlier and already serves. */
  readonly serves: boolean;
  /** Resolves once it has taken over and serves. Rejects if it took over but could not be opened. */
  readonly tookOver: Promise<Serving>;
}

/** @param from the shipped directory that it follows. */
export async function standBy({ from, ...options }: ServeOptions & { readonly from: string }): Promise<StandingBy> {
  const server = await openServer(options);
  const { promise, resolve, reject } = Promise.withResolvers<Serving>();
  // The caller may not await it: no unhandled rejection then.
  promise.catch(() => {});
  let standby: Standby | undefined;
  const close = async (): Promise<void> => {
    await server.close();
    await standby?.close();
  };
  try {
    const { onEvent } = server;
    if (await hasTakenOver(options.data)) {
      resolve(await server.begin());
      return { ...server, serves: true, tookOver: promise };
    }
    standby = await Standby.open({ from, data: options.data, keys: { keys: keysOf(options) }, onEvent });
    const answers = standbyAnswers(standby, () =>
      server
        .begin()
        .then(resolve, reject)
        .then(() => promise),
    );
    await server.standBy(answers);
    standby.start();
  } catch (error) {
    await close();
    throw error;
  }
  const { address, url, reloadTls } = server;
  return { address, url, reloadTls, close, serves: false, tookOver: promise };
}

function keysOf({ keyFile, sources }: ServeOptions): KeySources {
  return { ...sources, ...(keyFile !== undefined && { keyFile }) };
}

/** The sockets, and the choice of handler for them. */
interface OpenServer extends Pick<Serving, 'address' | 'url' | 'reloadTls' | 'close'> {
  readonly onEvent: (event: ApplianceEvent) => void;
  /** Opens the appliance, which handles requests from then on. */
  begin(): Promise<Serving>;
  /** Lets `answer` handle requests until then. */
  standBy(answer: Answer): Promise<void>;
}

async function openServer(options: ServeOptions): Promise<OpenServer> {
  const data = resolve(options.data);
  await stayOut(data, options.stopping);
  const ofProcess = processLimits();
  const limits = judgeLimits(ofProcess);
  await hardenProcess();
  const where = await listening(options);
  const { logger, end: endLog } = createLog(options.logLevel);
  for (const limit of limits) logger.warn(limit);
  if (where.tls) warnOfCertificate(where.tls, options, logger);
  const hold = await holdOf(data);
  const gate = new Gate(hold);
  const listeners = await openListeners(options, where, gate, ofProcess);
  const { networks, address, url } = listeners;
  const socket = httpServer(gate.handle, {
    origin: () => ({ local: true }),
    // A command of the administrator may take as long as it needs.
    limits: { silence: 0 },
  });
  let appliance: HeldAppliance | undefined;
  let later: NodeJS.Timeout | undefined;
  const keepMemory = giveMemoryBack();
  const onEvent = (event: ApplianceEvent): void => logEvent(logger, event);
  const close = closeOnce(async () => {
    keepMemory();
    clearTimeout(later);
    hold?.end();
    appliance?.giveUp();
    // Closing removes the socket's file, which may be another server's by now.
    const ended = networks.map((network) => endServer(network));
    if (appliance?.isInPlace ?? true) await Promise.all([...ended, endServer(socket)]);
    else await Promise.all(ended).finally(() => socket.unref());
    await appliance?.close();
    await endLog();
    // V8's helper may wait for a collection, and the end of the process for the helper (platform/threads/ending.ts).
    globalThis.gc?.();
  });
  const reloader = new Reloader({ networks, logger, tang: listeners.tang }, options);
  const reloadTls = () => reloader.certificate();
  const begin = async (): Promise<Serving> => {
    const finishCrypto = startCrypto(options.crypto ?? 'node', onEvent);
    if (!options.store) await needData(data, options);
    const own = {
      logger,
      baseUrl: () => url,
      address,
      onEvent,
      space: { every: 1000, ...options.space },
      held: hold?.released,
      onWaiting: (reason: string) => gate.wait(reason),
      certificates: options,
    };
    const started = await HeldAppliance.hold({ ...options, ...own }, { serves: true });
    appliance = started;
    // From here on a new upgrade ends this server first; one that began meanwhile does not know of it.
    if (!hold) await needNoUpgrade(data);
    const sealed = await started.start();
    if (!socket.listening) await openSocket(socket, data, logger);
    gate.open(started);
    later = setTimeout(() => void finishCrypto(), 1000).unref();
    return {
      address,
      url,
      transitAddress: listeners.transitAddress,
      tangAddress: listeners.tangAddress,
      setUpUrl: sealed ? undefined : await setUpUrl(started),
      get appliance() {
        return started.opened;
      },
      sealed,
      held: hold?.refusal,
      reloadTls,
      reload: (read) => reloader.configuration(read, (config) => started.reconfigure(config)),
      close,
    };
  };
  return {
    address,
    url,
    onEvent,
    reloadTls,
    close,
    begin: () =>
      begin().catch((error: unknown) => {
        gate.refuse();
        throw systemError(error, data);
      }),
    async standBy(answer) {
      await openSocket(socket, data, logger);
      gate.standBy(answer);
    },
  };
}

/** The network's listeners, each on its port. */
async function openListeners(
  options: ServeOptions,
  where: Listening,
  gate: Gate,
  ofProcess: ReturnType<typeof processLimits>,
) {
  const { transitListen, tangListen } = options;
  const budgets = { bodies: new BodyBudget(), answers: new AnswerBudget(), ahead: aheadBudget() };
  const given = [options.listen, transitListen, tangListen].filter((each) => each !== undefined);
  const maxConnections = connectionsFor(ofProcess, Math.max(1, given.length));
  const shared = { limits: { maxConnections, ...options.limits }, ...budgets };
  const network = networkServer(gate, where, shared);
  const transitWhere =
    transitListen === undefined ? undefined : await listening(transitOptions(options), '--transit-listen');
  const transit = transitWhere && networkServer(gate, transitWhere, shared, { surface: 'vault' });
  const tangWhere = await tangListening(options);
  const tangOrigin = { surface: 'tang', tangClients: tangWhere?.allowed };
  const tang = tangWhere && networkServer(gate, tangWhere, shared, tangOrigin);
  const networks: Server[] = [];
  try {
    for (const [server, place] of [
      [network, where] as const,
      [transit, transitWhere] as const,
      [tang, tangWhere] as const,
    ]) {
      if (!server || !place) continue;
      await takePort(server, place);
      networks.push(server);
    }
  } catch (error) {
    await Promise.all(networks.map((network) => endServer(network)));
    throw error;
  }
  return {
    networks,
    tang: tangOrigin,
    address: where.addressOf(portOf(network)),
    url: where.urlOf(portOf(network)),
    transitAddress: transit && transitWhere.addressOf(portOf(transit)),
    tangAddress: tang && tangWhere.addressOf(portOf(tang)),
  };
}

/** Makes the appliance where there is none yet; its directory must be private. */
async function needData(data: string, options: ServeOptions): Promise<void> {
  if ((await dataDirState(data)) !== 'whole') {
    const { keyFile, hosts, sources, onInitialised } = options;
    const made = await initAppliance({ data, keyFile, hosts, ...(sources?.env && { env: sources.env }) });
    await onInitialised?.(made);
  }
  await needPrivateDirectory(data);
}

async function setUpUrl({ opened, requests }: HeldAppliance): Promise<string | undefined> {
  const [only, another] = (await opened.status()).tenants;
  if (!only || another || only.counts.users > 0) return undefined;
  const target = { method: 'POST', path: '/local/set-up-link', search: '' };
  const { outcome } = await requests.handle({ ...target, headers: {}, local: true, body: emptyBody });
  const { url }: { readonly url?: unknown } = outcome.body;
  return typeof url === 'string' ? url : undefined;
}

/** The same certificate and proxy, but not the URL of the API's clients. */
function transitOptions({ url: _, ...options }: ServeOptions): ListenOptions {
  return { ...options, listen: options.transitListen ?? '' };
}

/**
 * Plain HTTP, whatever the address: the content is useless to anyone who reads or changes it, and a booting machine has
 * no certificate to check. The client is the connection's peer, behind a proxy too.
 */
async function tangListening({ tangListen, tangAllow }: ServeOptions) {
  if (tangListen === undefined) {
    if (tangAllow === undefined) return undefined;
    throw new KmsError('usage', '--tang-allow says who may ask at --tang-listen', { hint: 'give --tang-listen too' });
  }
  const where = await listening({ listen: tangListen, behindProxy: true }, '--tang-listen');
  return { ...where, behindProxy: false, allowed: tangAddresses(tangAllow) };
}

/** Budgets shared by the network's listeners; the local socket has its own, unaffected by them. */
interface SharedLimits extends Pick<ServeOptions, 'limits'> {
  readonly bodies: BodyBudget;
  readonly answers: AnswerBudget;
  readonly ahead: BodyBudget;
}

function networkServer(
  { handle }: Gate,
  { tls, behindProxy }: Listening,
  { limits, ...budgets }: SharedLimits,
  surface: Pick<RequestOrigin, 'surface' | 'tangClients'> = {},
): Server {
  return httpServer(handle, {
    tls,
    origin: (incoming: IncomingMessage) => ({ remoteAddress: clientAddress(incoming, behindProxy), ...surface }),
    ...(behindProxy ? { prepare: takeForwardedHost } : {}),
    ...(limits && { limits }),
    ...budgets,
    dialect: dialects[surface.surface ?? ''] ?? ownDialect,
  });
}

/** By surface name. */
const dialects: Readonly<Record<string, Dialect>> = { vault: vaultDialect, tang: tangDialect };

function logEvent(logger: Logger, { level, message, cause }: ApplianceEvent): void {
  logger[level](cause === undefined ? {} : { err: cause }, message);
}

function closeOnce(close: () => Promise<void>): () => Promise<void> {
  let closing: Promise<void> | undefined;
  return () => {
    closing ??= close();
    return closing;
  };
}

/** Paths that change nothing that could be lost, or that let the appliance be unsealed. */
const harmless: ReadonlySet<string> = new Set(['/healthz', '/system/seal-status', '/system/unseal', '/local/status']);

/** The upgrade itself comes through the local socket. */
function mayPass(hold: Hold, { path, local, headers }: ApiRequest): boolean {
  return harmless.has(path) || (local === true && hold.isUpgrade(headers));
}

function unavailable(message: string, headers: Outcome['headers'] = {}): Reply {
  return { outcome: { status: 503, body: { message }, headers } };
}

/** Holds early requests until the appliance is open, or has failed to open. */
class Gate {
  #hold: Hold | undefined;
  /** Resolves once there is a handler, or a reason for a refusal. */
  readonly #decided = Promise.withResolvers<void>();
  #reason: string | undefined;
  #appliance: HeldAppliance | undefined;
  #standby: Answer | undefined;

  constructor(hold: Hold | undefined) {
    this.#hold = hold;
    void hold?.released.then(() => {
      this.#hold = undefined;
    });
  }

  readonly handle: Answer = (request) => {
    if (this.#standby) return this.#standby(request);
    const hold = this.#hold;
    if (hold && !mayPass(hold, request)) {
      const { message, retryAfter = 1 } = hold.refusal;
      return Promise.resolve(unavailable(message, { 'Retry-After': String(retryAfter) }));
    }
    return this.#appliance ? this.#appliance.requests.handle(request) : this.#answerLater(request);
  };

  /** Refuses requests with this reason until it opens, instead of holding them: that may take long. */
  wait(reason: string): void {
    this.#reason = reason;
    this.#decided.resolve();
  }

  standBy(answer: Answer): void {
    this.#standby = answer;
    this.#decided.resolve();
  }

  open(appliance: HeldAppliance): void {
    this.#standby = undefined;
    this.#appliance = appliance;
    this.#decided.resolve();
  }

  refuse(): void {
    this.#decided.resolve();
  }

  async #answerLater(request: ApiRequest): Promise<Reply> {
    await this.#decided.promise;
    if (this.#standby || this.#appliance) return this.handle(request);
    if (this.#reason !== undefined) return unavailable(this.#reason, { 'Retry-After': '1' });
    return unavailable('the appliance could not start');
  }
}
