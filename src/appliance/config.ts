// Configuration of an appliance, and what a held data directory passes on to what opens it.

import type { CopySettings, Stopping } from '../backup/service.ts';
import type { HeldDirectory } from '../cluster/held-directory.ts';
import type { SharedEvents } from '../cluster/shared-stores.ts';
import type { World } from '../core/context.ts';
import type { KeySources } from '../custody/key-sources.ts';
import type { CertificateFiles } from '../doctor/keys.ts';
import type { Logger, Sealing } from '../http/appliance-port.ts';
import type { Kem } from '../model/kems.ts';
import type { Label } from '../model/label.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import type { SpaceSettings } from '../platform/space-guard.ts';
import type { StoreSource } from '../platform/store-url.ts';
import type { VerifierSettings } from '../platform/threads/segments.ts';
import type { NotedMark } from '../store/tables/marks.ts';
import type { MetricsSettings } from '../telemetry/metrics/metrics.ts';
import type { RetentionSettings } from '../telemetry/retention.ts';
import type { StreamingSettings } from '../telemetry/streaming/streaming.ts';
import type { PeopleSettings } from './mail.ts';

/** Configuration that may change while the appliance is open; of `copies` only the schedule. */
export interface LiveConfig {
  /** Largest request body, in bytes. */
  readonly bodyLimit?: number | undefined;
  /** Lifetimes of sessions, invites and resets, and the mail server. */
  readonly people?: PeopleSettings | undefined;
  /** Scheduled backups and shipping. */
  readonly copies?: CopySettings | undefined;
  /** Targets of streamed activity. */
  readonly streaming?: StreamingSettings | undefined;
  /** How long activity is kept. Default: for ever. */
  readonly retention?: RetentionSettings | undefined;
  /** Certificate files that it is served with, for doctor. */
  readonly certificates?: CertificateFiles | undefined;
  /** Its label, for people. */
  readonly label?: Label | undefined;
  /** Networks that may use Tang. Default: loopback, private and link-local networks. */
  readonly tangAllow?: readonly string[] | undefined;
}

/** Configuration of an appliance, without that of its server. */
export interface ApplianceConfig extends LiveConfig {
  /** The data directory; with `store`, that of this node. */
  readonly data: string;
  /** The database of an appliance shared by several nodes. */
  readonly store?: StoreSource | undefined;
  readonly keyFile?: string | undefined;
  /** Key wrapping of new rings that don't specify one. Default: `x25519`. */
  readonly defaultKem?: Kem | undefined;
  readonly metrics?: MetricsSettings | undefined;
  /** Tenants by name, and `system`, that are opened this once although their files are older than noted. */
  readonly acceptOlder?: readonly string[] | undefined;
  /** Serves it this once although a standby took over. */
  readonly takeBack?: boolean | undefined;
}

export interface ApplianceOptions extends ApplianceConfig {
  /** Other sources of the master key. */
  readonly sources?: Omit<KeySources, 'keyFile'> | undefined;
  /** The address for clients; called for each use, since a port may be chosen late. */
  readonly baseUrl?: () => string;
  /** The address on which this process listens. */
  readonly address?: string;
  readonly logger?: Logger;
  readonly onEvent?: (event: ApplianceEvent) => void;
  /** How the disk space is watched. Default: checked once. */
  readonly space?: SpaceSettings | undefined;
  /** Verification of closed activity log segments while it is served. */
  readonly segments?: Partial<VerifierSettings> | undefined;
  /** Opens it even if it is sealed on purpose, which ends that; only for a process of its own. */
  readonly unseals?: boolean;
  /** The end of an upgrade's trial: data leave the directory, and are removed, only after it. */
  readonly held?: Promise<void> | undefined;
  /** Called with the reason for a long wait before it opens. */
  readonly onWaiting?: ((reason: string) => void) | undefined;
  /** Aborts that wait. */
  readonly stopping?: AbortSignal | undefined;
  /** Clock and randomness. Default: the system's. */
  readonly world?: World;
  /** Milliseconds of a monotonic clock. Default: the process's. */
  readonly uptime?: () => number;
}

/** Properties of a held data directory, open or not. */
export interface Holder {
  readonly directory: HeldDirectory;
  readonly world: World;
  readonly sealing: Sealing;
  readonly stopping: Stopping;
  /** Whether it runs until it is told to end. A short command leaves long work to a server. */
  readonly serves: boolean;
  /** Called for changes made by other nodes. */
  readonly elsewhere: SharedEvents;
  /** Log positions of the stores when they were last open in this process: an older store is not opened again. */
  readonly known: Map<string, NotedMark>;
}
