// Reloader gives a running server a new certificate or configuration. It checks everything before it changes anything,
// and logs what it did.
import type { Server } from 'node:http';
import type { LiveConfig } from '../appliance/config.ts';
import { tangAddresses } from '../dialects/tang/limits.ts';
import { reasonOf } from '../errors.ts';
import { type Certificate, type RequestOrigin, replaceCertificate } from './http-server.ts';
import { type ListenOptions, readTls, warnOfCertificate } from './listen.ts';
import type { Logger } from './log.ts';

/** Configuration that a running server can change. */
interface LiveServerConfig extends LiveConfig, Pick<ListenOptions, 'tlsCert' | 'tlsKey'> {
  readonly logLevel?: string | undefined;
}

/** A configuration that was read again, and the names of its settings that changed. */
export interface Reread {
  readonly config: LiveServerConfig;
  /** Names of settings to apply now. */
  readonly live: readonly string[];
  readonly restart: readonly string[];
}

type Reconfigure = (config: LiveConfig) => Promise<void>;

interface Reloaded {
  readonly networks: readonly Server[];
  readonly logger: Logger;
  /** Gets the certificate that was read again, and reads its own one again if it has one. */
  readonly kmip: { renew(certificate: Certificate): Promise<void> } | undefined;
  /** Origin of Tang requests; a reload replaces the allowed clients in it. */
  readonly tang: { tangClients: RequestOrigin['tangClients'] };
}

export class Reloader {
  readonly #server: Reloaded;
  /** Files of the certificate in use; empty without TLS, which a reload cannot switch on. */
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
   * Applies what `read` returns, one call at a time; `reconfigure` gets the appliance's part. Returns false if nothing
   * was applied.
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
    const { bodyLimit, people, copies, streaming, retention, tangAllow, label } = config;
    const ofAppliance = { bodyLimit, people, copies, streaming, retention, tangAllow, label, certificates: tls };
    let failure: unknown;
    await reconfigure(ofAppliance).catch((error: unknown) => {
      failure = error;
    });
    const { logLevel = logger.level } = config;
    // The line is written if either the old or the new level allows it.
    if (!logger.isLevelEnabled('info')) logger.level = logLevel;
    if (failure === undefined) logger.info({ applied: live, restart }, sentence(live, restart));
    else logger.error({ err: failure }, 'the configuration was read again, but not all of it could be applied');
    logger.level = logLevel;
  }

  #present(certificate: Certificate): void {
    const { networks, logger, kmip } = this.#server;
    for (const network of networks) replaceCertificate(network, certificate);
    void kmip?.renew(certificate);
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
