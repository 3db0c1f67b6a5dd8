// The auditor's side of the activity log: its chain as lines of text, where it ends, and whether it holds. Reads from
// disk as it goes, so that millions of records take no more memory than a few. Format: docs/activity-export.md.
import { KmsError } from '../errors.ts';
import { type ChainAnchor, type ChainVerdict, chainStart, verifyChain } from '../store/activity/chain.ts';
import type { Store } from '../store/port.ts';

/** The last record that there is. */
export async function chainEnd(store: Store): Promise<ChainAnchor> {
  let end = chainStart;
  const { activityCount } = store.status();
  for await (const { record, hash } of store.readActivity(activityCount)) end = { seq: record.seq, hash };
  return end;
}

/** Follows the whole chain, which must go through the anchor where there is one. */
export async function verifyActivity(store: Store, anchor?: ChainAnchor): Promise<ChainVerdict> {
  let unreadable: KmsError | undefined;
  async function* links() {
    try {
      yield* store.readActivity(1);
    } catch (error) {
      // That the disk has something else than was written is a verdict too.
      if (!(error instanceof KmsError) || error.code !== 'corrupt') throw error;
      unreadable = error;
    }
  }
  const verdict = await verifyChain(links(), { anchors: anchor ? [anchor] : [] });
  if (!unreadable) return verdict;
  const { count, head } = verdict;
  return { count, head, broken: { position: count + 1, seq: head.seq + 1, problem: unreadable.message } };
}

/**
 * The records after the anchor as lines of an export. Throws `conflict` where the chain does not go through the anchor,
 * `corrupt` where a segment that it needs is known to be missing or changed.
 */
export async function exportChain(store: Store, anchor: ChainAnchor = chainStart): Promise<AsyncIterable<string>> {
  if ((await hashAt(store, anchor.seq)) !== anchor.hash) {
    throw new KmsError('conflict', `record ${anchor.seq}, which was anchored, is another one now or was dropped`, {
      hint: 'see what `kms activity verify` says',
    });
  }
  // Once lines are on their way, what is wrong can only break them off.
  await store.segments?.need(anchor.seq + 1);
  return linesAfter(store, anchor.seq);
}

async function hashAt(store: Store, seq: number): Promise<string | undefined> {
  if (seq === chainStart.seq) return chainStart.hash;
  for await (const { hash } of store.readActivity(seq)) return hash;
  return undefined;
}

async function* linesAfter(store: Store, seq: number): AsyncGenerator<string> {
  for await (const { line, hash } of store.readActivity(seq + 1)) yield exportLine(line, hash);
}

/** The record with its hash before its other fields; what follows the hash is byte for byte what the chain hashes. */
export function exportLine(line: string, hash: string): string {
  return `{"hash":"${hash}",${line.slice(1)}\n`;
}
