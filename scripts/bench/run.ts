// `npm run bench` measures the figures of docs/performance.md and ends with all goals beside them; `npm run bench --
// --runs 3 pages years` runs some sections three times. Needs `dist/kms`.
import { existsSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { measureActivity } from './activity.ts';
import { measureAws } from './aws.ts';
import { measureCommits } from './commit-cost.ts';
import { printGoals } from './figures.ts';
import { measureFiles } from './file-throughput.ts';
import { measureKmip } from './kmip.ts';
import { measureKnownKeys } from './known-keys.ts';
import { measureLogins } from './logins.ts';
import { measureMemory } from './memory.ts';
import { measureNodes } from './nodes.ts';
import { measureOverload } from './overload.ts';
import { measurePages } from './pages.ts';
import { measureRequests } from './requests.ts';
import { measureTransit } from './transit.ts';
import { measureYears } from './years.ts';

const sections: Readonly<Record<string, () => Promise<void>>> = {
  // Rounds of a second: in longer ones every checkpoint, some seconds apart, would fall on the same side of each round.
  requests: () => measureRequests(1, 13),
  known: () => measureKnownKeys(1, 13),
  transit: () => measureTransit(1, 13),
  aws: () => measureAws(1, 13),
  kmip: () => measureKmip(1, 13),
  overload: () => measureOverload(4, 3),
  commits: () => measureCommits([1_000, 1_000_000], 9),
  files: () => measureFiles(2048, 3),
  logins: () => measureLogins(3, 5),
  nodes: () => measureNodes(4, 3),
  activity: () => measureActivity(1_000_000, 9),
  pages: () => measurePages(9),
  years: () => measureYears(10_000_000, 100_000, 3),
  memory: () => measureMemory({ minutes: 10, others: 1, chores: false }),
};

const { values, positionals: chosen } = parseArgs({
  options: { runs: { type: 'string', default: '1' } },
  allowPositionals: true,
});
const runs = Number(values.runs);
if (!Number.isSafeInteger(runs) || runs < 1) {
  console.error('--runs: expected a whole number from 1 on');
  process.exit(2);
}
const unknown = chosen.filter((name) => !Object.hasOwn(sections, name));
if (unknown.length > 0) {
  console.error(`no such section: ${unknown.join(', ')}; there are ${Object.keys(sections).join(', ')}`);
  process.exit(2);
}
if (!existsSync(join(import.meta.dirname, '../../dist/kms'))) {
  console.error('the bench runs the executable: make it first with ./scripts/build');
  process.exit(1);
}
console.log(`${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}`);
for (let run = 0; run < runs; run++) {
  for (const [name, measure] of Object.entries(sections)) {
    if (chosen.length === 0 || chosen.includes(name)) await measure();
  }
}
printGoals();
