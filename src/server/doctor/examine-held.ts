// What the thread of an examination does: proves stores that are held.
import { nodeFiles } from '../../store/node-files.ts';
import { keysFromData } from '../keys-as-data.ts';
import type { ExamineWork } from '../worker-jobs.ts';
import { type Examination, Findings } from './finding.ts';
import { heldFiles } from './held-files.ts';
import { examineStores } from './stores.ts';

export async function examineHeld({ root, held, keys, wasm, now }: ExamineWork): Promise<Examination> {
  const findings = new Findings();
  const stores = keys.map(([dir, data]) => ({ dir, keys: keysFromData(data) }));
  const files = heldFiles(nodeFiles(root), held);
  const examined = await examineStores({ files, wasm, stores, now }, findings.add);
  return { ...examined, findings: findings.all };
}
