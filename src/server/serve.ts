// An appliance on the network and on the local socket. The port is taken first, so that a conflict shows before
// anything is created; early requests wait until the appliance is open.

import { resolve } from 'node:path';
import { HeldAppliance, type OpenAppliance } from '../appliance/appliance.ts';

import { initAppliance } from '../appliance/init.ts';
import { hasTakenOver, Standby } from '../backup/standby.ts';
import { standbyAnswers } from '../backup/standby-answers.ts';
import type { KeySources } from '../custody/key-sources.ts';
import { type KmsError, systemError } from '../errors.ts';
import { emptyBody } from '../http/request.ts';
import type { Answer } from '../http/request-log.ts';
import { dataDirState } from '../platform/data-dir.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import { hardenProcess } from '../platform/hardening.ts';
import { startCrypto } from '../platform/native-crypto.ts';
import { needPrivateDirectory } from '../platform/ownership.ts';
import { judgeLimits, processLimits } from '../platform/process-limits.ts';
import { holdOf, needNoUpgrade, stayOut } from '../upgrade/journal.ts';
import type { ServeOptions } from './config.ts';
import { Gate } from './gate.ts';
import { endServer, httpServer } from './http-server.ts';
import { giveMemoryBack } from './idle-memory.ts';
import { listening, openSocket, warnOfCertificate } from './listen.ts';
import { openListeners } from './listeners.ts';
import { createLog, type Logger } from './log.ts';
import { Reloader, type Reread } from './reload.ts';

export interface Serving {
  /** The address listened on. */
  readonly address: string;
  /** The address that clients use. */
  readonly url: string;
  /** Address for software that speaks Vault transit; undefined without one. */
  readonly vaultAddress: string | undefined;
  readonly awsAddress: string | undefined;
  /** Address for clients of KMIP; undefined without one. */
  readonly kmipAddress: string | undefined;
  /** Address for clients of Tang; undefined without one. */
  readonly tangAddress: string | undefined;
  /** Throws `sealed` while it is sealed. */
  readonly appliance: OpenAppliance;
  /**
   * The page on which the first administrator creates their user; undefined if there is a user already, or it is not
   * clear in which tenant.
   */
  readonly setUpUrl: string | undefined;
  /** Requests since the start; all are answered once it is closed. */
  readonly requests: number;
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
  const { logger, end: endLog } = createLog(options.logLevel, undefined, options.logFormat);
  for (const limit of limits) logger.warn(limit);
  if (where.tls) warnOfCertificate(where.tls, options, logger);
  const hold = await holdOf(data);
  const gate = new Gate(hold);
  const listeners = await openListeners(options, where, gate, ofProcess, logger);
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
    const ended = [...networks.map((network) => endServer(network)), listeners.kmip?.end()];
    if (appliance?.isInPlace ?? true) await Promise.all([...ended, endServer(socket)]);
    else await Promise.all(ended).finally(() => socket.unref());
    await appliance?.close();
    await endLog();
    // V8's helper may wait for a collection, and the end of the process for the helper (platform/threads/ending.ts).
    globalThis.gc?.();
  });
  const reloader = new Reloader({ networks, logger, tang: listeners.tang, kmip: listeners.kmip }, options);
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
    // From here on a new upgrade ends this server first; one that began in the meantime does not know of it.
    if (!hold) await needNoUpgrade(data);
    const sealed = await started.start();
    if (!socket.listening) await openSocket(socket, data, logger);
    gate.open(started);
    later = setTimeout(() => void finishCrypto(), 1000).unref();
    return {
      address,
      url,
      vaultAddress: listeners.vaultAddress,
      awsAddress: listeners.awsAddress,
      kmipAddress: listeners.kmipAddress,
      tangAddress: listeners.tangAddress,
      setUpUrl: sealed ? undefined : await setUpUrl(started),
      get appliance() {
        return started.opened;
      },
      get requests() {
        return gate.requests;
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
