// What an appliance is opened with.
import type { World } from '../core/context.ts';
import type { Logger, Sealing } from '../http/deps.ts';
import type { CopySettings } from './backup/service.ts';
import type { KeySources } from './custody/key-sources.ts';
import type { CertificateFiles } from './doctor/certificates.ts';
import type { MetricsSettings } from './metrics/metrics.ts';
import type { Notice } from './notices.ts';
import type { PeopleSettings } from './people.ts';
import type { SpaceSettings } from './space/space-guard.ts';

export interface OpenOptions {
  /** The data directory. */
  readonly data: string;
  readonly keyFile?: string | undefined;
  /** Where else the master key may come from. */
  readonly sources?: Omit<KeySources, 'keyFile'> | undefined;
  /** Where clients reach it; asked anew for each use, since a port may be chosen late. */
  readonly baseUrl?: () => string;
  readonly logger?: Logger;
  readonly onNotice?: (notice: Notice) => void;
  /** Bytes of a request's body. */
  readonly bodyLimit?: number;
  readonly people?: PeopleSettings;
  /** Scheduled backups and shipping. */
  readonly copies?: CopySettings | undefined;
  readonly metrics?: MetricsSettings | undefined;
  /** What it is served with, for doctor to look at. */
  readonly certificates?: CertificateFiles | undefined;
  /** How the room on the disk is watched; looked at once when absent. */
  readonly space?: SpaceSettings | undefined;
  /** By which it can be sealed from outside; absent where it cannot. */
  readonly sealing?: Sealing;
  /** Clock and randomness; the system's when absent. */
  readonly world?: World;
}
