// The metrics of an open appliance: its counters, and the text that one tenant gets, together with the numbers of the
// process, which all tenants share.

import type { CopiesStatus } from '../../backup/service.ts';
import type { Meter } from '../../http/appliance-port.ts';
import { parseTimestamp } from '../../model/timestamp.ts';
import type { SpaceStatus } from '../../platform/space-guard.ts';
import type { StoreStatus } from '../../store/port.ts';
import { version } from '../../version.ts';
import type { RetentionStatus } from '../retention.ts';
import type { StreamStatus } from '../streaming/stream.ts';
import { RequestCounts, StoreCounts, type TurnCounts } from './counts.ts';
import type { Exposition } from './exposition.ts';

export interface MetricsSettings {
  /** Also counts encrypts by keyring, which shows keyring names to anyone who reads metrics. */
  readonly rings?: boolean | undefined;
}

/** Values looked up at a scrape. */
interface MetricsView {
  /** Status of the tenant's store. */
  readonly store: StoreStatus;
  readonly copies: CopiesStatus;
  readonly streams: readonly StreamStatus[];
  readonly retention: RetentionStatus | undefined;
  readonly space: SpaceStatus | undefined;
  /** Number of nodes, if several share the appliance. */
  readonly nodes: number | undefined;
  /** Numbers of open requests for approval, and of broken glass that is not acknowledged. */
  readonly approvals: { readonly open: number; readonly brokenGlass: number };
}

export class Metrics {
  readonly #requests: RequestCounts;
  readonly #stores = new Map<string, StoreCounts>();
  /** In epoch milliseconds. */
  readonly #openedAt: number;

  constructor(openedAt: number, { rings = false }: MetricsSettings = {}) {
    this.#openedAt = openedAt;
    this.#requests = new RequestCounts(rings);
  }

  get meter(): Meter {
    return this.#requests;
  }

  /** The counts of the store in a directory. */
  store(dir: string): StoreCounts {
    const counts = this.#stores.get(dir) ?? new StoreCounts();
    this.#stores.set(dir, counts);
    return counts;
  }

  /** `dir` is the directory of the tenant's store. */
  async text(tenant: string, dir: string, view: MetricsView): Promise<string> {
    // Loaded on demand: an appliance without monitoring does not need them.
    const [{ Exposition }, { processNumbers }] = await Promise.all([
      import('./exposition.ts'),
      import('./process-metrics.ts'),
    ]);
    const out = new Exposition();
    this.#requestNumbers(out, tenant);
    const counts = this.store(dir);
    storeNumbers(out, counts, view.store);
    const { open, brokenGlass } = view.approvals;
    gauge(
      out,
      'kms_approval_requests_open',
      'Open requests of this tenant: those that wait for approval, and those that have it.',
      open,
    );
    gauge(
      out,
      'kms_broken_glass',
      'Operations done without the approval that they needed, and not acknowledged yet.',
      brokenGlass,
    );
    if (counts.turns) turnNumbers(out, counts.turns);
    this.#applianceNumbers(out, view);
    await processNumbers(out);
    return out.text();
  }

  #requestNumbers(out: Exposition, tenant: string): void {
    out.counter(
      'kms_requests_total',
      'Answered requests of this tenant.',
      ['action', 'verdict', 'status'],
      this.#requests.answers(tenant).map(({ action, verdict, status, count }) => ({
        labels: { action, verdict, status: String(status) },
        value: count,
      })),
    );
    out.histogram(
      'kms_request_duration_seconds',
      'How long requests of this tenant took until the answer, in seconds.',
      this.#requests.durations(tenant).map(([action, buckets]) => ({ labels: { action }, buckets })),
    );
    out.counter(
      'kms_key_items_total',
      'Things that managed keys encrypted, decrypted or brought under a newer version, and those that failed.',
      ['action', 'result'],
      this.#requests.items(tenant).flatMap(([action, { done, failed }]) => [
        { labels: { action, result: 'done' }, value: done },
        { labels: { action, result: 'failed' }, value: failed },
      ]),
    );
    out.counter(
      'kms_key_uses_total',
      'Successful requests to managed keys, by the dialect that they came in.',
      ['action', 'dialect', 'key'],
      this.#requests.keyUses(tenant).map(({ action, dialect, key, count }) => ({
        labels: { action, dialect, key: key ?? '' },
        value: count,
      })),
    );
    out.counter(
      'kms_unknown_logins_total',
      'Failed logins of this tenant under names that nobody has.',
      [],
      [{ value: this.#requests.loginsByNobody(tenant) }],
    );
    out.counter(
      'kms_workload_logins_total',
      'Logins of programs by a proof of their API key, by result.',
      ['result'],
      [...this.#requests.workloadLogins(tenant)].map(([result, value]) => ({ labels: { result }, value })),
    );
    const rings = this.#requests.encryptsByRing(tenant);
    if (!rings) return;
    const samples = [...rings].map(([ring, value]) => ({ labels: { ring }, value }));
    out.counter('kms_ring_encrypts_total', 'Encrypts by keyring.', ['ring'], samples);
  }

  #applianceNumbers(out: Exposition, { copies, streams, retention, space, nodes }: MetricsView): void {
    out.gauge('kms_build_info', 'The version, as a label.', ['version'], [{ labels: { version }, value: 1 }]);
    out.gauge('kms_sealed', 'Always 0: a sealed appliance answers 503 in place of metrics.', [], [{ value: 0 }]);
    gauge(out, 'kms_unsealed_timestamp_seconds', 'When it was opened, in Unix time.', this.#openedAt / 1000);
    const verified = parseTimestamp(copies.lastVerified?.madeAt ?? '') ?? 0;
    gauge(
      out,
      'kms_backup_last_verified_timestamp_seconds',
      'When the last backup that was found to restore was made, in Unix time; 0 where there was none.',
      verified / 1000,
    );
    if (copies.shipping) {
      gauge(
        out,
        'kms_shipping_arrived_timestamp_seconds',
        'Up to when everything has arrived where --ship-to says, in Unix time; 0 while nothing has.',
        (copies.shipping.arrivedAt ?? 0) / 1000,
      );
    }
    if (streams.length > 0) streamNumbers(out, streams);
    if (retention) {
      gauge(
        out,
        'kms_activity_retention_waiting_records',
        'Records of all tenants that are old enough to be dropped and have not arrived where --activity-to says.',
        retention.waitingRecords,
      );
    }
    if (nodes !== undefined) {
      gauge(out, 'kms_nodes', 'Nodes that were heard of within the last 15 seconds, including this one.', nodes);
    }
    gauge(out, 'kms_writes_refused', '1 while writes are refused for want of room on the disk.', space?.reason ? 1 : 0);
    if (!space) return;
    gauge(out, 'kms_disk_free_bytes', 'Free on the disk of the data directory, in bytes.', space.freeBytes);
    gauge(out, 'kms_disk_size_bytes', 'Size of that disk, in bytes.', space.totalBytes);
  }
}

function storeNumbers(out: Exposition, counts: StoreCounts, status: StoreStatus): void {
  const buckets = (name: string, help: string, each: StoreCounts['commitSeconds']): void =>
    out.histogram(name, help, [{ buckets: each }]);
  buckets('kms_commit_duration_seconds', 'How long groups took to get to the disk, in seconds.', counts.commitSeconds);
  buckets('kms_fsync_duration_seconds', 'How long the fsync of each group took, in seconds.', counts.fsyncSeconds);
  buckets('kms_commit_transactions', 'Transactions in a group.', counts.transactions);
  out.counter('kms_write_failures_total', 'Groups that could not be written.', [], [{ value: counts.failedWrites }]);
  buckets('kms_checkpoint_duration_seconds', 'How long checkpoints took, in seconds.', counts.checkpointSeconds);
  out.counter(
    'kms_checkpoints_total',
    'Checkpoints.',
    ['result'],
    [
      { labels: { result: 'done' }, value: counts.checkpoints },
      { labels: { result: 'failed' }, value: counts.failedCheckpoints },
    ],
  );
  gauge(
    out,
    'kms_checkpoint_last_timestamp_seconds',
    'When the snapshot in use was made, in Unix time; 0 before the first.',
    (status.lastCheckpointAt ?? 0) / 1000,
  );
  gauge(out, 'kms_log_bytes', 'Log since the last checkpoint, in bytes.', status.logBytes);
  gauge(out, 'kms_snapshot_bytes', 'The snapshot, in bytes.', status.snapshotBytes);
  gauge(out, 'kms_activity_bytes', 'Closed files of the activity log, in bytes.', status.activityBytes);
  gauge(out, 'kms_activity_segments', 'Closed files of the activity log.', status.activitySegments);
  gauge(
    out,
    'kms_activity_faulty_segments',
    'Closed files of the activity log that are known to be missing or changed.',
    status.activityFaults.length,
  );
  gauge(
    out,
    'kms_activity_verified_segments',
    'Closed files whose contents were verified in the pass under way, or in the last one.',
    status.activityVerified,
  );
  gauge(
    out,
    'kms_activity_verification_last_timestamp_seconds',
    'When the last whole pass over the contents of the closed files ended, in Unix time; 0 before the first.',
    (status.activityVerifiedAt ?? 0) / 1000,
  );
  const dropped = status.activityDropped?.seq ?? 0;
  gauge(out, 'kms_activity_records', 'Records of the activity log that are kept.', status.activityCount - dropped);
  gauge(out, 'kms_activity_dropped_records', 'Records of the activity log that retention dropped.', dropped);
}

function turnNumbers(out: Exposition, { waitSeconds, rows, losses, branches }: TurnCounts): void {
  out.histogram('kms_turn_wait_seconds', 'How long turns of the shared log were waited for, in seconds.', [
    { buckets: waitSeconds },
  ]);
  const count = (name: string, help: string, value: number): void => out.counter(name, help, [], [{ value }]);
  count('kms_turn_replayed_rows_total', 'Groups of other nodes that were run here.', rows);
  count('kms_turns_lost_total', 'Turns that were lost with the connection to the database.', losses);
  count('kms_lost_branches_total', 'Times that the log did not go on where this node was.', branches);
}

/** Targets are numbered as in `kms status`: addresses must not appear in labels. */
function streamNumbers(out: Exposition, streams: readonly StreamStatus[]): void {
  const labels = ({ kind }: StreamStatus, at: number) => ({ target: String(at + 1), kind });
  out.gauge(
    'kms_activity_stream_lag_records',
    'Records of all tenants that have not arrived where --activity-to says.',
    ['target', 'kind'],
    streams.map((stream, at) => ({ labels: labels(stream, at), value: stream.lagRecords })),
  );
  out.gauge(
    'kms_activity_stream_lag_seconds',
    'For how long the oldest of them has been there, in seconds.',
    ['target', 'kind'],
    streams.map((stream, at) => ({ labels: labels(stream, at), value: stream.lagSeconds })),
  );
  out.gauge(
    'kms_activity_stream_failing',
    '1 while tries fail, with what kind of failure the last one ended.',
    ['target', 'kind', 'fault'],
    streams.map((stream, at) => ({
      labels: { ...labels(stream, at), fault: stream.fault ?? 'none' },
      value: stream.fault ? 1 : 0,
    })),
  );
}

function gauge(out: Exposition, name: string, help: string, value: number): void {
  out.gauge(name, help, [], [{ value }]);
}
