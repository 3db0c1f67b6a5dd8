// The examination of a running appliance: its stores are held at one commit and proven on a worker thread, while it
// keeps serving.
import type { CryptoInUse } from '../api/local/status.ts';
import { pieces } from '../backup/format.ts';
import type { Copies } from '../backup/service.ts';
import { type Collected, type Collecting, collect, isLost } from '../backup/write.ts';
import { unless } from '../client/unless.ts';
import type { SharedNode } from '../cluster/shared-node.ts';
import { unmetRules } from '../core/approval-rules.ts';
import type { SealKeeper } from '../custody/seal-keeper.ts';
import { KmsError } from '../errors.ts';
import { sealName } from '../platform/data-dir.ts';
import { type Examination, Findings } from '../platform/finding.ts';
import { cryptoInUse } from '../platform/native-crypto.ts';
import { nodeFiles } from '../platform/node-files.ts';
import { sqlWasm, startWorker } from '../platform/program-files.ts';
import { endThread } from '../platform/threads/ending.ts';
import { answerOf, keysAsData, type WorkAnswerOf } from '../platform/threads/jobs.ts';
import type { SegmentVerifier } from '../platform/threads/segments.ts';
import type { Files } from '../store/files.ts';
import type { Streaming } from '../telemetry/streaming/streaming.ts';
import { type CertificateFiles, examineCertificates } from './keys.ts';
import { type ExamineWork, findSegment, withCopies } from './stores.ts';

interface ServedDeps extends Collecting {
  /** The data directory. */
  readonly root: string;
  readonly seal: SealKeeper;
  readonly copies: Copies;
  readonly streaming: Pick<Streaming, 'status'>;
  readonly verifier: Pick<SegmentVerifier, 'again'> | undefined;
  readonly certificates: CertificateFiles;
  readonly tangAllow: readonly string[];
  readonly now: () => number;
  /** Aborted when the appliance closes. */
  readonly closing: AbortSignal;
  /** The database, if the stores are in one. */
  readonly node: Pick<SharedNode, 'examine'> | undefined;
}

export async function examineServed(deps: ServedDeps): Promise<Examination> {
  const { root, seal, copies, streaming, certificates, now } = deps;
  const findings = new Findings();
  await examineCertificates(certificates, now(), findings.add);
  const crypto = cryptoInUse();
  examineCrypto(crypto, findings);
  examineShipping(copies, findings);
  examineStreaming(streaming, findings);
  await examineTang(deps, findings);
  await examineGlass(deps, findings);
  await examineRules(deps, findings);
  await examineSegments(deps, findings);
  if (deps.node) findings.take(await deps.node.examine(now));
  const { stores, release } = await collect(deps, { counted: false });
  try {
    const kept = stores.filter(({ dir }) => seal.current.stores.includes(sealName(dir)));
    const work = {
      kind: 'examine',
      held: kept.flatMap(({ files }) => files),
      keys: kept.map(({ dir }) => [dir, keysAsData(seal.current.keysFor(sealName(dir)))] as const),
      wasm: await sqlWasm(),
      now: now(),
    } as const;
    const examined = deps.node
      ? await withCopies(async (copies) => {
          await copyHeld(kept, nodeFiles(copies));
          return onThread({ ...work, root: copies }, deps.closing);
        })
      : await onThread({ ...work, root }, deps.closing);
    const known = new Set(findings.all.map(({ subject }) => subject));
    findings.take(examined.findings.filter(({ subject }) => !known.has(subject)));
    return { ...examined, crypto, findings: findings.all };
  } finally {
    release();
  }
}

/** Segments missing there are missing in the copy too. */
async function copyHeld(stores: Collected['stores'], to: Files): Promise<void> {
  for (const { dir, files, source } of stores) {
    if (!source) continue;
    await to.makeDir(dir);
    for (const file of files) {
      if (!(await isLost(source, file))) await to.replace(file.name, pieces(source, file.name, file.bytes));
    }
  }
}

/**
 * Checks that the segment files exist; contents are verified by the background passes, except those that were faulty
 * before.
 */
async function examineSegments({ system, tenants, verifier }: ServedDeps, { add }: Findings): Promise<void> {
  await verifier?.again();
  for (const store of [system, ...tenants.all.map(({ handle }) => handle.store)]) {
    await store.segments.look();
    for (const fault of store.status().activityFaults) findSegment(fault, add);
  }
}

function examineCrypto(crypto: CryptoInUse, findings: Findings): void {
  if (crypto.by === 'node' || crypto.problem === undefined) return;
  const message = `node:crypto failed its self-test, and noble does its work, slower: ${crypto.problem}`;
  findings.add(
    'warning',
    'crypto-fallback',
    'node:crypto',
    message,
    'see whether another build of this program passes',
  );
}

function examineShipping(copies: Copies, findings: Findings): void {
  const { shipping } = copies.status();
  if (shipping?.error === undefined) return;
  if (shipping.laterEpoch !== undefined) {
    const advice = 'stop the one of the two that should not go on, and see what was written there';
    findings.add('error', 'shipping-later-life', shipping.to, shipping.error, advice);
    return;
  }
  const advice = 'check that the directory can be written to; shipping then resumes by itself';
  findings.add('warning', 'shipping-fails', shipping.to, shipping.error, advice);
}

/** In seconds; a receiver that was restarted catches up in less. */
const longestLag = 300;

function examineStreaming(streaming: Pick<Streaming, 'status'>, findings: Findings): void {
  const advice =
    'check that the receiver runs and accepts records; streaming then resumes by itself, and nothing is lost meanwhile';
  for (const { to, lagRecords, lagSeconds, error } of streaming.status()) {
    if (error === undefined && lagSeconds <= longestLag) continue;
    const behind = `${lagRecords} records of activity have not arrived, the oldest for ${lagSeconds} seconds`;
    findings.add('warning', 'activity-behind', to, error === undefined ? behind : `${behind}: ${error}`, advice);
  }
}

/** Days since a pair was rotated, and since the last recovery with it. */
const oldTangPair = 90;

async function examineTang({ tangAllow, tenants, now }: ServedDeps, { add }: Findings): Promise<void> {
  const open = tangAllow.find((block) => block.endsWith('/0'));
  if (open !== undefined) {
    const message = `--tang-allow ${open}: anybody with a copy of a disk can unlock it from anywhere`;
    add('warning', 'tang-open', '--tang-listen', message, 'allow only the networks that the machines are in');
  }
  const since = now() - oldTangPair * 86_400_000;
  for (const { record, handle } of tenants.all) {
    const pairs = await handle.store.transaction(({ tang }) => tang.all());
    const old = pairs.filter(({ rotatedAt, recoveredAt = 0 }) => (rotatedAt ?? now()) < since && recoveredAt < since);
    if (old.length === 0) continue;
    const message = `Tang key pairs that were rotated and not used for ${oldTangPair} days: ${old.length}`;
    const advice = 'see `kms tang list`; delete those that nothing is bound to any more: they open old copies of disks';
    add('advice', 'tang-old-pairs', record.name, message, advice);
  }
}

/** Reports rules that too few approvers can satisfy now, so that nothing that they cover can be done. */
async function examineRules({ tenants, now }: ServedDeps, { add }: Findings): Promise<void> {
  for (const { record, handle } of tenants.all) {
    for (const { name, able, count } of await handle.store.transaction((tx) => unmetRules(tx, now()))) {
      const approvals = count === 1 ? '1 approval' : `${count} approvals`;
      const message = `the rule ${name} needs ${approvals}, and ${able} of its approvers can approve now`;
      const advice =
        'let its approvers add a second factor, or vouch for them again with `kms approval rule update RULE --vouch`; if too few are left to approve that, break the glass for it';
      add('warning', 'rule-unmet', record.name, message, advice);
    }
  }
}

/** Reports broken glass until somebody acknowledges it. */
async function examineGlass({ tenants }: ServedDeps, { add }: Findings): Promise<void> {
  for (const { record, handle } of tenants.all) {
    const broken = await handle.store.transaction(({ brokenGlass }) => brokenGlass.countOpen());
    if (broken === 0) continue;
    const times = broken === 1 ? 'once' : `${broken} times`;
    const message = `the glass was broken ${times}: what needs approval was done without it`;
    add(
      'warning',
      'glass-broken',
      record.name,
      message,
      'look at `kms approval broken-glass`, and acknowledge what was justified',
    );
  }
}

async function onThread(work: ExamineWork, closing: AbortSignal): Promise<Examination> {
  const worker = startWorker(work);
  try {
    const answer = await unless(closing, () => answerOf<WorkAnswerOf<Examination>>(worker, 'the examination'));
    if (answer.ok) return answer.result;
    throw new KmsError('internal', `the examination failed: ${answer.message}`);
  } finally {
    await endThread(worker);
  }
}
