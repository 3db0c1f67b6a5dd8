// What a command is given: the world, its arguments and its options, read by name and checked as they are read. An option that
// the grammar does not know is a defect and says so.
import type { Command } from 'commander';
import { numberProblemIn, parseExactly } from '../api/exact-json.ts';
import { KmsError } from '../errors.ts';
import type { GrammarCommand } from './grammar-command.ts';
import { type Io, pathFrom } from './io.ts';

export class Cli {
  readonly io: Io;
  readonly #command: GrammarCommand;
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(io: Io, command: GrammarCommand) {
    this.io = io;
    this.#command = command;
    this.#values = command.optsWithGlobals();
  }

  /** The argument at this place; the grammar says that it must be there. */
  arg(index: number): string {
    const value = this.#command.args[index];
    if (value === undefined) throw new KmsError('internal', `the grammar has no argument ${index}`);
    return value;
  }

  /** All of them. */
  get args(): readonly string[] {
    return this.#command.args;
  }

  optionalArg(index: number): string | undefined {
    return this.#command.args[index];
  }

  text(option: string): string | undefined {
    const value = this.#value(option);
    return typeof value === 'string' ? value : undefined;
  }

  /** The value of an option without which the command makes no sense. */
  needed(option: string): string {
    const value = this.text(option);
    if (value === undefined) throw new KmsError('usage', `${option} is missing`, { hint: this.seeHelp });
    return value;
  }

  isOn(option: string): boolean {
    return this.#value(option) === true;
  }

  /** All values of an option that may be repeated. */
  list(option: string): readonly string[] {
    const value = this.#value(option);
    return Array.isArray(value) ? value : [];
  }

  integer(option: string): number | undefined {
    const value = this.text(option);
    if (value === undefined) return undefined;
    if (!/^[0-9]{1,15}$/.test(value)) {
      throw new KmsError('usage', `${option}: expected a whole number, got "${value}"`, { hint: this.seeHelp });
    }
    return Number(value);
  }

  /** An option that takes `true` or `false`. */
  boolean(option: string): boolean | undefined {
    const value = this.text(option);
    if (value === undefined) return undefined;
    if (value !== 'true' && value !== 'false') {
      throw new KmsError('usage', `${option}: expected true or false, got "${value}"`, { hint: this.seeHelp });
    }
    return value === 'true';
  }

  /** A JSON object given on the command line. */
  object(option: string): Record<string, unknown> | undefined {
    const value = this.text(option);
    if (value === undefined) return undefined;
    let parsed: unknown;
    try {
      parsed = parseExactly(value);
    } catch {
      parsed = undefined;
    }
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
      throw new KmsError('usage', `${option}: expected a JSON object such as '{"team": "blue"}'`, {
        hint: this.seeHelp,
      });
    }
    const problem = numberProblemIn(parsed);
    if (problem !== undefined) throw new KmsError('usage', `${option}: ${problem}`, { hint: this.seeHelp });
    // The checks above leave an object with string keys.
    return parsed as Record<string, unknown>;
  }

  /** A time: milliseconds since 1970, or a date such as 2026-01-02 or 2026-01-02T03:04:05Z. */
  time(option: string): number | undefined {
    const value = this.text(option);
    if (value === undefined) return undefined;
    const time = /^[0-9]{1,15}$/.test(value)
      ? Number(value)
      : /^\d{4}-\d\d-\d\d/.test(value)
        ? Date.parse(value)
        : Number.NaN;
    if (Number.isNaN(time)) {
      throw new KmsError(
        'usage',
        `${option}: expected milliseconds since 1970 or a date such as 2026-01-02T03:04:05Z, got "${value}"`,
      );
    }
    return time;
  }

  /** A file name, from the directory in which the command was typed. */
  path(option: string): string | undefined {
    const value = this.text(option);
    return value === undefined ? undefined : pathFrom(this.io, value);
  }

  /** Whether the option stands on the command line, not in the environment. */
  isTyped(option: string): boolean {
    for (let command: Command | null = this.#command; command; command = command.parent) {
      if (command.getOptionValueSource(this.#attribute(option)) === 'cli') return true;
    }
    return false;
  }

  /** Whether answers go out as JSON. */
  get json(): boolean {
    return this.isOn('--json');
  }

  get seeHelp(): string {
    return `see \`${this.#command.fullName()} --help\``;
  }

  /** The whole grammar. */
  get grammar(): GrammarCommand {
    return this.#command.root;
  }

  /** The same command with other streams, and with these global options as if they had been typed, by their long names. */
  posing(io: Io, options: ReadonlyMap<string, string>): Cli {
    const { root } = this.#command;
    for (const option of root.options) {
      const value = options.get(option.long ?? '');
      if (value !== undefined) root.setOptionValueWithSource(option.attributeName(), value, 'cli');
    }
    return new Cli(io, this.#command);
  }

  #value(option: string): unknown {
    return this.#values[this.#attribute(option)];
  }

  #attribute(option: string): string {
    for (let command: Command | null = this.#command; command; command = command.parent) {
      const known = command.options.find(({ long }) => long === option);
      if (known) return known.attributeName();
    }
    throw new KmsError('internal', `the grammar has no option ${option} here`);
  }
}

/** Only the entries that are given: what is left out is not sent. */
export function given<T extends object>(entries: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  // Entries that are undefined are gone, which is what the type says.
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
