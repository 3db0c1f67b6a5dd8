// The grammar for tests: all its commands, and example lines split into words as a shell would.
import { PassThrough } from 'node:stream';
import type { GrammarCommand } from '../../src/cli/command.ts';
import { program } from '../../src/cli/program.ts';

/** The root command, with no real streams. */
export function grammar(): GrammarCommand {
  const stream = new PassThrough();
  const signal = new AbortController().signal;
  const io = { args: [], env: {}, cwd: '/', home: '/', stdin: stream, stdout: stream, stderr: stream, signal };
  return program({ io, help: { out: [], err: [] }, exitCode: 0, run: async () => 0 });
}

/** All commands that do something, hidden ones left out. */
export function leavesOf(command: GrammarCommand): GrammarCommand[] {
  const below = command.subcommands;
  return below.length === 0 ? [command] : below.flatMap(leavesOf);
}

/** The arguments of each call of `kms` in a line of shell. */
export function callsIn(line: string): string[][] {
  const words: string[][] = [[]];
  for (const [, operator, word = ''] of line.matchAll(/\s*(?:([|<>]+)|((?:'[^']*'|"[^"]*"|[^\s|<>'"])+))/g)) {
    if (operator === undefined) words.at(-1)?.push(word.replace(/'([^']*)'|"([^"]*)"/g, '$1$2'));
    else words.push([]);
  }
  return words.filter(([name]) => name === 'kms').map((call) => call.slice(1));
}
