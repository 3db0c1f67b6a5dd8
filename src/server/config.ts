// Configuration of a server and of the appliance it serves.
import type { ApplianceConfig, ApplianceOptions } from '../appliance/config.ts';
import type { Initialised } from '../appliance/init.ts';
import type { CryptoChoice } from '../platform/native-crypto.ts';
import type { HttpLimits } from './http-server.ts';
import type { ListenOptions } from './listen.ts';
import type { LogFormat } from './log.ts';

/** Configuration of a server and its appliance. Each service gets its own part as one object. */
export interface ServeConfig extends ListenOptions, ApplianceConfig {
  /** `HOST:PORT` for software that speaks Vault transit. Absent: none. */
  readonly vaultListen?: string | undefined;
  /** `HOST:PORT` for software that speaks AWS KMS. Absent: none. */
  readonly awsListen?: string | undefined;
  /** The region that its clients must sign for, and that names of keys have there. */
  readonly awsRegion?: string | undefined;
  /** `HOST:PORT` for clients of KMIP, which need a certificate. Absent: none. */
  readonly kmipListen?: string | undefined;
  /** A certificate and key for that listener alone. */
  readonly kmipTlsCert?: string | undefined;
  readonly kmipTlsKey?: string | undefined;
  /** Whether it offers cipher suites of old appliances. */
  readonly kmipOldCiphers?: boolean | undefined;
  /** `HOST:PORT` for clients of Tang. Absent: none. */
  readonly tangListen?: string | undefined;
  /** Hosts of the first tenant, if the directory is initialised. */
  readonly hosts?: readonly string[] | undefined;
  readonly logLevel?: string | undefined;
  readonly logFormat?: LogFormat | undefined;
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
