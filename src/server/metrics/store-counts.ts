// What the writing of a store's files takes: groups of transactions, fsyncs, checkpoints.
import type { Commit } from '../../store/commit-log.ts';
import type { StoreNotice } from '../../store/notice.ts';
import { Buckets, checkpointSeconds, diskSeconds, groupSizes } from './buckets.ts';

export class StoreCounts {
  readonly commitSeconds = new Buckets(diskSeconds);
  readonly fsyncSeconds = new Buckets(diskSeconds);
  readonly transactions = new Buckets(groupSizes);
  readonly checkpointSeconds = new Buckets(checkpointSeconds);
  checkpoints = 0;
  failedCheckpoints = 0;
  failedWrites = 0;

  commit({ transactions, ms, syncMs }: Commit): void {
    this.commitSeconds.add(ms / 1000);
    this.fsyncSeconds.add(syncMs / 1000);
    this.transactions.add(transactions);
  }

  /** Times one. */
  async checkpoint<R>(run: () => Promise<R>): Promise<R> {
    const started = performance.now();
    const result = await run();
    this.checkpointSeconds.add((performance.now() - started) / 1000);
    return result;
  }

  notice({ kind }: StoreNotice): void {
    if (kind === 'checkpoint') this.checkpoints++;
    else if (kind === 'checkpoint-failed') this.failedCheckpoints++;
    else if (kind === 'write-failed') this.failedWrites++;
  }
}
