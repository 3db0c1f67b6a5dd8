// The network's listeners: the API's, and those for Vault transit and Tang, which share their budgets.
import { X509Certificate } from 'node:crypto';
import type { IncomingMessage, Server } from 'node:http';
import { kmipPath } from '../dialects/kmip/messages.ts';
import { tangAddresses } from '../dialects/tang/limits.ts';
import { KmsError } from '../errors.ts';
import { connectionsFor, type processLimits } from '../platform/process-limits.ts';
import { AnswerBudget } from './answer-room.ts';
import { BodyBudget } from './body-budget.ts';
import type { ServeOptions } from './config.ts';
import type { Gate } from './gate.ts';
import { awsDialect, type Dialect, ownDialect, tangDialect, vaultDialect } from './http-refusals.ts';
import {
  type Certificate,
  clientAddress,
  endServer,
  httpServer,
  type RequestOrigin,
  takeForwardedHost,
} from './http-server.ts';
import { aheadBudget } from './in-turn.ts';
import { type KmipOptions, kmipListener } from './kmip-listener.ts';
import {
  authority,
  type Listening,
  type ListenOptions,
  listening,
  parseListen,
  portOf,
  readTls,
  takePort,
} from './listen.ts';
import type { Logger } from './log.ts';

/** The network's listeners, each on its port. */
export async function openListeners(
  options: ServeOptions,
  where: Listening,
  gate: Gate,
  ofProcess: ReturnType<typeof processLimits>,
  logger: Logger,
) {
  const { vaultListen, awsListen, kmipListen, tangListen } = options;
  const budgets = { bodies: new BodyBudget(), answers: new AnswerBudget(), ahead: aheadBudget() };
  const given = [options.listen, vaultListen, awsListen, kmipListen, tangListen].filter((each) => each !== undefined);
  const maxConnections = connectionsFor(ofProcess, Math.max(1, given.length));
  const shared = { limits: { maxConnections, ...options.limits }, ...budgets };
  // Some clients of KMIP speak it in HTTPS, at the API's address.
  const network = networkServer(gate, where, shared, {}, kmipListen !== undefined);
  const vaultWhere =
    vaultListen === undefined ? undefined : await listening(ofDialect(options, vaultListen), '--vault-listen');
  const transit = vaultWhere && networkServer(gate, vaultWhere, shared, { surface: 'vault' });
  const awsWhere = awsListen === undefined ? undefined : await listening(ofDialect(options, awsListen), '--aws-listen');
  const aws = awsWhere && networkServer(gate, awsWhere, shared, { surface: 'aws', awsRegion: options.awsRegion });
  const tangWhere = await tangListening(options);
  const tangOrigin = { surface: 'tang', tangClients: tangWhere?.allowed };
  const tang = tangWhere && networkServer(gate, tangWhere, shared, tangOrigin);
  const kmip = await kmipServer(options, gate, { bodies: budgets.bodies, maxConnections, logger });
  const networks: Server[] = [];
  try {
    for (const [server, place] of [
      [network, where] as const,
      [transit, vaultWhere] as const,
      [aws, awsWhere] as const,
      [tang, tangWhere] as const,
    ]) {
      if (!server || !place) continue;
      await takePort(server, place);
      networks.push(server);
    }
    if (kmip) await takePort(kmip.server, kmip);
  } catch (error) {
    await Promise.all(networks.map((network) => endServer(network)));
    throw error;
  }
  return {
    networks,
    tang: tangOrigin,
    address: where.addressOf(portOf(network)),
    url: where.urlOf(portOf(network)),
    vaultAddress: transit && vaultWhere.addressOf(portOf(transit)),
    awsAddress: aws && awsWhere.addressOf(portOf(aws)),
    kmip,
    kmipAddress: kmip && `kmip://${authority(kmip.host, portOf(kmip.server))}`,
    tangAddress: tang && tangWhere.addressOf(portOf(tang)),
  };
}

/** The same certificate and proxy, but not the URL of the API's clients. */
function ofDialect({ url: _, ...options }: ServeOptions, listen: string): ListenOptions {
  return { ...options, listen };
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

interface KmipSurroundings extends Pick<KmipOptions, 'bodies'> {
  readonly maxConnections: number;
  readonly logger: Logger;
}

/** TLS ends here, proxy or not: what a client's certificate proves, nothing in front can pass on. */
async function kmipServer(options: ServeOptions, gate: Gate, { bodies, maxConnections, logger }: KmipSurroundings) {
  const { kmipListen, kmipTlsCert: tlsCert, kmipTlsKey: tlsKey, kmipOldCiphers: oldCiphers = false } = options;
  if (kmipListen === undefined) return undefined;
  const { host, port } = parseListen(kmipListen, '--kmip-listen');
  const own = await readTls({ ...(tlsCert !== undefined && { tlsCert }), ...(tlsKey !== undefined && { tlsKey }) });
  const tls = own ?? (await readTls(options));
  if (!tls) {
    throw new KmsError('usage', 'KMIP is served in TLS alone', {
      hint: 'give --kmip-tls-cert and --kmip-tls-key, or --tls-cert and --tls-key',
    });
  }
  if (new X509Certificate(tls.cert).publicKey.asymmetricKeyType !== 'rsa') {
    logger.info('KMIP: the key of the certificate is none of RSA, which old appliances cannot do without');
  }
  const listener = kmipListener(gate.handle, {
    tls,
    oldCiphers,
    bodies,
    logger,
    limits: { connections: maxConnections },
  });
  const renew = async (certificate: Certificate): Promise<void> => {
    try {
      const again =
        own && tlsCert !== undefined && tlsKey !== undefined ? await readTls({ tlsCert, tlsKey }) : certificate;
      if (again) listener.replace(again);
    } catch (err) {
      logger.error({ err }, 'the certificate for KMIP could not be read again; the one in use stays');
    }
  };
  return { ...listener, host, port, renew };
}

/** Budgets shared by the network's listeners; the local socket has its own, unaffected by them. */
interface SharedLimits extends Pick<ServeOptions, 'limits'> {
  readonly bodies: BodyBudget;
  readonly answers: AnswerBudget;
  readonly ahead: BodyBudget;
}

function networkServer(
  gate: Gate,
  { tls, behindProxy }: Listening,
  { limits, ...budgets }: SharedLimits,
  surface: Pick<RequestOrigin, 'surface' | 'tangClients' | 'awsRegion'> = {},
  hasKmip = false,
): Server {
  return httpServer(gate.handle, {
    tls,
    // A proxy's own certificate would stand for all of its clients.
    ...(behindProxy ? {} : { asksCertificates: () => gate.asksCertificates() }),
    origin: (incoming: IncomingMessage) => ({
      remoteAddress: clientAddress(incoming, behindProxy),
      ...(hasKmip && incoming.url === kmipPath ? { surface: 'kmip' } : surface),
    }),
    ...(behindProxy ? { prepare: takeForwardedHost } : {}),
    ...(limits && { limits }),
    ...budgets,
    // On the local socket an end means that the command was stopped, and its work is given up.
    allowHalfOpen: true,
    dialect: dialects[surface.surface ?? ''] ?? ownDialect,
  });
}

/** Keyed by surface name. */
const dialects: Readonly<Record<string, Dialect>> = { vault: vaultDialect, tang: tangDialect, aws: awsDialect };
