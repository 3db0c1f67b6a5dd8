// Commands about the command line itself: help, manual page, shell completion, and licences of the code in the
// executable.

import { Writable } from 'node:stream';
import type { Guide } from '../../model/program-files.ts';
import { version as programVersion } from '../../version.ts';
import type { Cli, CliOf, GrammarCommand } from '../command.ts';
import { type Candidate, type Place, placeOf } from '../completion/line.ts';
import { scriptFor } from '../completion/scripts.ts';
import { notAmong } from '../grammar/declaration.ts';
import type { helping } from '../grammar/help.ts';
import { shells } from '../grammar/option-sets.ts';
import { type Io, say, write } from '../io.ts';
import { manualPage } from '../manual.ts';
import { printJson, printLine, wholeList } from '../output.ts';
import { commandNear } from '../suggestions.ts';
import { visible } from '../text.ts';

export async function help(cli: CliOf<typeof helping.help>): Promise<void> {
  const words = cli.get('[TOPIC...]');
  const search = cli.get('--search');
  const { grammar } = cli;
  if (search !== undefined) return showFound(cli, [search, ...words].join(' ').split(/\s+/).filter(Boolean));
  const [word] = words;
  const commands = grammar.subcommands.map((each) => each.name());
  if (word === undefined) {
    const { topicsOf } = await import('../guides.ts');
    const guides = await allGuides();
    const topicOf = topicsOf(guides, commands);
    const topics = guides.map((guide) => `  ${topicOf(guide).padEnd(20)}  ${guide.title}`);
    grammar.addHelpText('after', `\nGuides, for \`kms help NAME\`:\n${topics.join('\n')}`);
    return grammar.help();
  }
  const guide = words.length > 1 || commands.includes(word) ? undefined : await guideFor(word);
  if (guide) return showGuide(cli, guide, commands);
  const topics = commands.includes(word) ? [] : (await allGuides()).map(({ name }) => name.replace(/^guide-/, ''));
  const [, ...rest] = words;
  rest.reduce((command, name) => below(command, name), below(grammar, word, topics)).help();
}

async function allGuides(): Promise<readonly Guide[]> {
  const { guides } = await import('../../platform/program-files.ts');
  return guides();
}

async function guideFor(word: string): Promise<Guide | undefined> {
  const { guideNamed } = await import('../guides.ts');
  return guideNamed(await allGuides(), word);
}

/** Wider lines are hard to read. */
const widestText = 100;

async function showGuide(cli: Cli, { text }: Guide, commands: readonly string[]): Promise<void> {
  const { plainText, targetsOf, topicsOf } = await import('../guides.ts');
  const guides = await allGuides();
  const targetName = targetsOf(guides, topicsOf(guides, commands));
  const room = Math.min(cli.io.stdout.columns || 80, widestText);
  await write(cli.io.stdout, `${plainText(text, room, targetName).join('\n').trim()}\n`);
}

const mostFound = 20;

async function showFound(cli: Cli, words: readonly string[]): Promise<void> {
  const { searchGuides, topicsOf } = await import('../guides.ts');
  const guides = await allGuides();
  const found = words.length === 0 ? [] : searchGuides(guides, words);
  if (found.length === 0) return say(cli.io, `no guide has ${words.join(' and ') || 'nothing'} in one section`);
  const commands = cli.grammar.subcommands.map((each) => each.name());
  const topicOf = topicsOf(guides, commands);
  const lines = found
    .slice(0, mostFound)
    .flatMap(({ guide, heading, line }) => [`${topicOf(guide)}: ${heading}`, ...(line ? [`    ${line}`] : [])]);
  await write(cli.io.stdout, `${lines.join('\n')}\n`);
  if (found.length > mostFound) await say(cli.io, `${found.length - mostFound} more sections; add a word to see fewer`);
}

export async function version(cli: CliOf<typeof helping.version>): Promise<void> {
  if (cli.json) await printJson(cli, { version: programVersion });
  else await printLine(cli, programVersion);
}

/** The command of that name; `topics` are further words that may have been meant. */
function below(command: GrammarCommand, name: string, topics: readonly string[] = []): GrammarCommand {
  const found = command.subcommands.find((each) => each.name() === name || each.aliases().includes(name));
  if (found) return found;
  const near = commandNear(command, name, topics);
  const kind = topics.length > 0 ? 'command or guide' : 'command';
  return command.error(`unknown ${kind} '${name}'${near === undefined ? '' : `; did you mean ${near}?`}`);
}

export async function completion(cli: CliOf<typeof helping.completion>): Promise<void> {
  const typed = cli.get('<SHELL>');
  const shell = shells.find((each) => each === typed);
  if (shell !== undefined) return write(cli.io.stdout, scriptFor(shell));
  throw cli.wrong(`SHELL: ${notAmong(typed, shells)}`);
}

/**
 * Called by the scripts of `kms completion` at each press of the key. The first line says what may follow: `words`,
 * `files` or `directories`; the others are candidates, each with a tab and a description. It never fails and never
 * prints an error.
 */
export async function complete(cli: CliOf<typeof helping.complete>): Promise<void> {
  const place = placeOf(cli.grammar, cli.get('[WORDS...]'));
  const names = await namesAt(cli, place).catch(() => []);
  const { prefix, word, kind } = place;
  const mode = kind === 'file' ? 'files' : kind === 'directory' ? 'directories' : 'words';
  const lines = [...place.words, ...names.filter(({ value }) => !value.startsWith('-'))]
    // A candidate with escaped characters could not be typed.
    .filter(({ value }) => value.startsWith(word) && visible(value) === value)
    .map(({ value, about }) => `${prefix}${value}\t${visible(about)}`);
  await write(cli.io.stdout, `${[mode, ...new Set(lines)].join('\n')}\n`);
}

async function namesAt(cli: Cli, { kind, given, word }: Place): Promise<readonly Candidate[]> {
  if (kind === undefined || kind === 'file' || kind === 'directory' || typeof kind === 'object') return [];
  const { namesOf } = await import('../completion/names.ts');
  // No warnings during completion.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const quiet: Io = Object.create(cli.io, { stderr: { value: nowhere } });
  return namesOf(cli.withOptions(quiet, given), kind, word);
}

export async function man(cli: CliOf<typeof helping.man>): Promise<void> {
  await write(cli.io.stdout, manualPage(cli.grammar));
}

interface ThirdParty {
  readonly name: string;
  readonly version: string;
  /** SPDX expression. */
  readonly license: string;
  readonly text: string;
}

const rule = '='.repeat(80);

export async function licenses(cli: CliOf<typeof helping.licenses>): Promise<void> {
  const { attribution } = await import('../../platform/program-files.ts');
  const { thirdParties, sbom } = await attribution();
  if (cli.get('--sbom')) return write(cli.io.stdout, sbom);
  // Cast: written by the build.
  const parts: readonly ThirdParty[] = JSON.parse(thirdParties);
  if (cli.json)
    return printJson(cli, wholeList(parts.map(({ name, version, license }) => ({ name, version, license }))));
  const list = parts.map(({ name, version, license }) => `  ${name} ${version}: ${license}\n`);
  const texts = parts.map(({ name, version, text }) => `\n${rule}\n${name} ${version}\n\n${text.trimEnd()}\n`);
  await write(cli.io.stdout, `kms is licensed under Apache-2.0. In it are:\n${list.join('')}${texts.join('')}`);
}
