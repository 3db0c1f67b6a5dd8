// Reloader is how a server goes on with another certificate, or another configuration as far as that can change while
// it serves. All that can be wrong is found before anything changes, and the log says what was done.
import type { Server } from 'node:http';
import type { LiveConfig } from '../appliance/open-appliance.ts';
import { tangAddresses } from '../dialects/tang/limits.ts';
import { reasonOf } from '../errors.ts';
import { type Certificate, type RequestOrigin, replaceCertificate } from './http-server.ts';
import { type ListenOptions, readTls, warnOfCertificate } from './listen.ts';
import type { Logger } from './log.ts';

/** Everything that a server may take while it serves. */
interface LiveServerConfig extends LiveConfig, Pick<ListenOptions, 'tlsCert' | 'tlsKey'> {
  readonly logLevel?: string | undefined;
}

/** A configuration that was read again, and the names of its settings that changed. */
export interface Reread {
  readonly config: LiveServerConfig;
  /** Those that are to be taken now. */
  readonly live: readonly string[];
  readonly restart: readonly string[];
}

type Reconfigure = (config: LiveConfig) => Promise<void>;

interface Reloaded {
  readonly networks: readonly Server[];
  readonly logger: Logger;
  /** The clients of Tang that are let in are named in it. */
  readonly tang: { tangClients: RequestOrigin['tangClients'] };
}

export class Reloader {
  readonly #server: Reloaded;
  /** The files of the certificate in use; none for a server without TLS, which stays one. */
  #tls: Pick<ListenOptions, 'tlsCert' | 'tlsKey'>;
  #last: Promise<unknown> = Promise.resolve();

  constructor(server: Reloaded, { tlsCert, tlsKey }: ListenOptions) {
    this.#server = server;
    this.#tls = { ...(tlsCert !== undefined && { tlsCert }), ...(tlsKey !== undefined && { tlsKey }) };
  }

  /** Reads the certificate again. What cannot be used changes nothing. Answers whether there is one. */
  async certificate(): Promise<boolean> {
    try {
      const certificate = await readTls(this.#tls);
      if (!certificate) return false;
      this.#present(certificate);
    } catch (err) {
      this.#server.logger.error({ err }, 'the certificate could not be read again; the one in use stays');
    }
    return true;
  }

  /**
   * Goes on with what `read` answers, one after the other; `reconfigure` hands on what the appliance takes of it.
   * Answers whether anything could change.
   */
  configuration(read: () => Promise<Reread>, reconfigure: Reconfigure): Promise<boolean> {
    const done = this.#last.then(() => this.#configuration(read, reconfigure));
    this.#last = done;
    return done;
  }

  async #configuration(read: () => Promise<Reread>, reconfigure: Reconfigure): Promise<boolean> {
    try {
      await this.#take(await read(), reconfigure);
      return true;
    } catch (err) {
      const message = `the configuration could not be read again, nothing was changed: ${reasonOf(err)}`;
      this.#server.logger.error({ err }, message);
      return false;
    }
  }

  /** Throws before it changes anything. */
  async #take({ config, live, restart }: Reread, reconfigure: Reconfigure): Promise<void> {
    const { logger, tang } = this.#server;
    const isReplaced = this.#tls.tlsCert !== undefined && config.tlsCert !== undefined;
    const tls = isReplaced ? config : this.#tls;
    const certificate = await readTls(tls);
    const tangClients = tangAddresses(config.tangAllow);
    this.#tls = tls;
    if (certificate) this.#present(certificate);
    tang.tangClients = tangClients;
    const { bodyLimit, people, copies, streaming, retention, tangAllow } = config;
    const ofAppliance = { bodyLimit, people, copies, streaming, retention, tangAllow, certificates: tls };
    let failure: unknown;
    await reconfigure(ofAppliance).catch((error: unknown) => {
      failure = error;
    });
    const { logLevel = logger.level } = config;
    // The line is written where the level that was or the one that comes lets it.
    if (!logger.isLevelEnabled('info')) logger.level = logLevel;
    if (failure === undefined) logger.info({ applied: live, restart }, sentence(live, restart));
    else logger.error({ err: failure }, 'the configuration was read again, and not all of it could be applied');
    logger.level = logLevel;
  }

  #present(certificate: Certificate): void {
    const { networks, logger } = this.#server;
    for (const network of networks) replaceCertificate(network, certificate);
    logger.info({ file: this.#tls.tlsCert }, 'the certificate was read again');
    warnOfCertificate(certificate, this.#tls, logger);
  }
}

function sentence(live: readonly string[], restart: readonly string[]): string {
  const parts = [
    live.length > 0 ? `applied ${live.join(', ')}` : 'nothing to apply',
    ...(restart.length > 0 ? [`a restart is needed for ${restart.join(', ')}`] : []),
  ];
  return `the configuration was read again: ${parts.join('; ')}`;
}
