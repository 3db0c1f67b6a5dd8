// `kms __complete -- WORD…`: what the scripts of `kms completion` ask at each press of the key. The first line says what may stand there:
// `words`, `files` or `directories`; the others are candidates, each with a tab and what it is. It never fails and never says a word.
import { Writable } from 'node:stream';
import type { Cli } from '../cli.ts';
import { type Candidate, type Place, placeOf } from '../completion/words.ts';
import { type Io, write } from '../io.ts';
import { visible } from '../visible.ts';

export async function run(cli: Cli): Promise<void> {
  const place = placeOf(cli.grammar, cli.args);
  const names = await namesAt(cli, place).catch(() => []);
  const { prefix, word, kind } = place;
  const mode = kind === 'file' ? 'files' : kind === 'directory' ? 'directories' : 'words';
  const lines = [...place.words, ...names]
    // Something else than what it is cannot be typed.
    .filter(({ value }) => value.startsWith(word) && visible(value) === value)
    .map(({ value, about }) => `${prefix}${value}\t${visible(about)}`);
  await write(cli.io.stdout, `${[mode, ...new Set(lines)].join('\n')}\n`);
}

async function namesAt(cli: Cli, { kind, given, word }: Place): Promise<readonly Candidate[]> {
  if (kind === undefined || kind === 'file' || kind === 'directory' || typeof kind === 'object') return [];
  const { namesOf } = await import('../completion/names.ts');
  // Warnings are for those who run a command.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const quiet: Io = Object.create(cli.io, { stderr: { value: nowhere } });
  return namesOf(cli.posing(quiet, given), kind, word);
}
