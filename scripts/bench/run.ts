// `npm run bench [requests|known|transit|overload|commits|files|logins|nodes|activity|pages|years|memory …]`: the figures
// of the README, as ratios inside one run. Needs `dist/kms`.
import { existsSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { measureActivity } from './activity.ts';
import { measureCommits } from './commit-cost.ts';
import { measureFiles } from './file-throughput.ts';
import { measureKnownKeys } from './known-keys.ts';
import { measureLogins } from './logins.ts';
import { measureMemory } from './memory.ts';
import { measureNodes } from './nodes.ts';
import { measureOverload } from './overload.ts';
import { measurePages } from './pages.ts';
import { measureRequests } from './requests.ts';
import { measureTransit } from './transit.ts';
import { measureYears } from './years.ts';

const chosen = process.argv.slice(2);
const wanted = (name: string): boolean => chosen.length === 0 || chosen.includes(name);
if (!existsSync(join(import.meta.dirname, '../../dist/kms'))) {
  console.error('the bench runs the executable: make it first with ./scripts/build');
  process.exit(1);
}
console.log(`${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}`);
// Rounds of a second: in longer ones every checkpoint, some seconds apart, would fall on the same side of each round.
if (wanted('requests')) await measureRequests(1, 13);
if (wanted('known')) await measureKnownKeys(1, 13);
if (wanted('transit')) await measureTransit(1, 13);
if (wanted('overload')) await measureOverload(4, 3);
if (wanted('commits')) await measureCommits([1_000, 1_000_000], 9);
if (wanted('files')) await measureFiles(2048, 3);
if (wanted('logins')) await measureLogins(3, 5);
if (wanted('nodes')) await measureNodes(4, 3);
if (wanted('activity')) await measureActivity(1_000_000, 9);
if (wanted('pages')) await measurePages(9);
if (wanted('years')) await measureYears(10_000_000, 100_000, 5);
if (wanted('memory')) await measureMemory({ minutes: 10, others: 1, chores: false });
