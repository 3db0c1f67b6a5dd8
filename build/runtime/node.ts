// The copy of Node that becomes the executable: stripped and freed of libatomic before the program is injected, and
// fitted to its flags and its one language after. Each step that this Node does not allow is left out, with a note.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs';

import { join } from 'node:path';
import { paths } from '../paths.ts';
import { rehashNodeCaches } from './code-cache.ts';
import { dropLanguages } from './without-languages.ts';
import { dropLibatomic } from './without-libatomic.ts';

type Say = (line: string) => void;

/**
 * The path of a stripped copy of this Node that needs no libatomic, or of a plain copy if the changed one doesn't run.
 * Made once for each version.
 */
export function strippedNode(say: Say): string {
  const copy = join(paths.work, `node-${process.version}-${process.arch}`);
  if (existsSync(copy)) return copy;
  const draft = `${copy}.${process.pid}`;
  copyFileSync(process.execPath, draft);
  chmodSync(draft, 0o755);
  spawnSync('strip', ['--strip-all', draft], { stdio: 'ignore' });
  const bytes = readFileSync(draft);
  if (dropLibatomic(bytes)) writeFileSync(draft, bytes);
  else say('note: dist/kms may need libatomic.so.1 (Debian: libatomic1) where it runs');
  if (spawnSync(draft, ['--version'], { encoding: 'utf8' }).stdout?.trim() !== process.version) {
    say('note: the runtime could be made neither smaller nor less demanding; it is used as it is');
    copyFileSync(process.execPath, draft);
  }
  renameSync(draft, copy);
  return copy;
}

/** Fits an executable that holds the program to the flags that it runs with, and drops the languages it does not use. */
export function fitExecutable(executable: string, flags: readonly string[], say: Say): void {
  const bytes = readFileSync(executable);
  if (rehashNodeCaches(bytes, flags) === 0)
    say("note: no cache of Node's own modules is used, each start takes longer");
  const smaller = dropLanguages(bytes);
  if (!smaller) say('note: the runtime keeps all languages of its Unicode library, 28 MB that dist/kms does not need');
  writeInPieces(executable, smaller ?? bytes);
  chmodSync(executable, 0o755);
}

/**
 * Writes in small pieces. A file written at once is cached by the kernel in large units, and a process running it then
 * maps them whole: 22 MB more than it uses.
 */
function writeInPieces(path: string, bytes: Uint8Array): void {
  const piece = 64 * 1024;
  const file = openSync(path, 'w');
  try {
    for (let at = 0; at < bytes.length; at += piece) writeSync(file, bytes, at, Math.min(piece, bytes.length - at));
  } finally {
    closeSync(file);
  }
}
