// Completion of a command line from the grammar alone: which words, files or kinds of names may come next.
import type { Option } from 'commander';
import { GrammarCommand } from '../command.ts';
import type { Completes } from '../grammar/declaration.ts';
import { describeOption, GrammarOption, isRepeated } from '../grammar-option.ts';

export interface Candidate {
  readonly value: string;
  /** Description, for shells that show one. */
  readonly about: string;
}

export interface Place {
  /** Options already on the line, by long name. */
  readonly given: ReadonlyMap<string, string>;
  /** Prefix of every candidate: an option and its `=`, or empty. */
  readonly prefix: string;
  /** Text typed after the prefix. */
  readonly word: string;
  /** Candidates from the grammar. */
  readonly words: readonly Candidate[];
  /** Further kind of value that fits here. */
  readonly kind: Completes;
}

/** `line` holds the words after `kms`; the last one is to be completed. */
export function placeOf(root: GrammarCommand, line: readonly string[]): Place {
  const word = line.at(-1) ?? '';
  const state = read(root, line.slice(0, -1));
  const { command, waiting, onlyOperands, given } = state;
  const place = { given, prefix: '', word, words: [], kind: undefined };
  if (waiting && !(waiting.optional && word.startsWith('-')))
    return { ...place, ...valuesOf(completesOption(waiting)) };
  if (!onlyOperands && word.startsWith('-')) {
    const [name = '', value] = split(word);
    if (value === undefined) return { ...place, words: optionsOf(command, given) };
    const option = find(command, name);
    return { ...place, prefix: `${name}=`, word: value, ...valuesOf(option && completesOption(option)) };
  }
  const commands = command.subcommands;
  if (commands.length > 0) return { ...place, words: commands.map(named) };
  if (command.name() === 'help') return { ...place, words: below(root, state.operands).map(named) };
  return { ...place, ...valuesOf(command.completesArgument(state.operands.length)) };
}

/** Commands of a group of `root`, named as for `kms help`. */
function below(root: GrammarCommand, names: readonly string[]): readonly GrammarCommand[] {
  return names.reduce(
    (commands, name) => commands.find((command) => command.name() === name)?.subcommands ?? [],
    root.subcommands,
  );
}

function valuesOf(kind: Completes): Pick<Place, 'words' | 'kind'> {
  return typeof kind === 'object'
    ? { words: kind.map((value) => ({ value, about: '' })), kind: undefined }
    : { words: [], kind };
}

interface Reading {
  command: GrammarCommand;
  /** Option that still needs its value. */
  waiting: Option | undefined;
  onlyOperands: boolean;
  readonly operands: string[];
  readonly given: Map<string, string>;
}

function read(root: GrammarCommand, words: readonly string[]): Reading {
  const state: Reading = { command: root, waiting: undefined, onlyOperands: false, operands: [], given: new Map() };
  for (const word of words) readWord(state, word);
  return state;
}

function readWord(state: Reading, word: string): void {
  if (state.waiting && !(state.waiting.optional && word.startsWith('-'))) {
    state.given.set(state.waiting.long ?? '', word);
    state.waiting = undefined;
  } else if (word === '--' && !state.onlyOperands) state.onlyOperands = true;
  else if (word.startsWith('-') && word !== '-' && !state.onlyOperands) readOption(state, word);
  else {
    const next =
      state.operands.length === 0 ? state.command.subcommands.find((each) => each.name() === word) : undefined;
    if (next) state.command = next;
    else state.operands.push(word);
  }
}

function readOption(state: Reading, word: string): void {
  const [name = '', value] = split(word);
  const option = find(state.command, name);
  if (!option) return;
  state.given.set(option.long ?? name, value ?? '');
  state.waiting = (option.required || option.optional) && value === undefined ? option : undefined;
}

/** Splits `--ring=pay` in two. */
function split(word: string): string[] {
  const at = word.startsWith('--') ? word.indexOf('=') : -1;
  return at < 0 ? [word] : [word.slice(0, at), word.slice(at + 1)];
}

function find(command: GrammarCommand, name: string): Option | undefined {
  return levels(command)
    .flatMap(({ options }) => options)
    .find(({ long, short }) => long === name || short === name);
}

function optionsOf(command: GrammarCommand, given: ReadonlyMap<string, string>): Candidate[] {
  const all = levels(command).flatMap(({ options }) => options);
  const options = all
    .filter((option, n) => all.findIndex(({ long }) => long === option.long) === n)
    .filter((option) => isRepeated(option) || !given.has(option.long ?? ''))
    .map((option) => ({ value: option.long ?? option.flags, about: describeOption(option) }));
  return [...options, { value: '--help', about: 'show the help' }];
}

/** The command and its parents, whose options it accepts too. */
function levels(command: GrammarCommand): GrammarCommand[] {
  return command.parent instanceof GrammarCommand ? [command, ...levels(command.parent)] : [command];
}

function named(command: GrammarCommand): Candidate {
  return { value: command.name(), about: command.description() };
}

export function completesOption(option: Option): Completes {
  return option instanceof GrammarOption ? option.kind.completes : undefined;
}
