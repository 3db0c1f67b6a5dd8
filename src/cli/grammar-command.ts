// What every command of the grammar has in common: options that may also come from the environment, errors in the product's
// own form, help with examples, and code that is loaded when the command is used.
import { Command, type Option } from 'commander';
import { KmsError } from '../errors.ts';
import { Cli } from './cli.ts';
import { hasColour, type Io } from './io.ts';

/** What a command's file exports. What it returns is the exit code; nothing is 0. */
export interface CommandModule {
  // biome-ignore lint/suspicious/noConfusingVoidType: most commands return nothing
  run(cli: Cli): Promise<number | void>;
}

/** What the grammar needs while it is read: the world, where help goes, and where the exit code is kept. */
export interface Session {
  readonly io: Io;
  readonly help: { readonly out: string[]; readonly err: string[] };
  exitCode: number;
}

/** Gathers an option that may be repeated. */
export function repeated(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

/** Of help that goes to no terminal. */
const widthElsewhere = 100;
/** Descriptions are wrapped down to this width of theirs. */
const leastWrapped = 20;

export class GrammarCommand extends Command {
  readonly session: Session;
  /** Lines as they are typed; shown at the end of the help. */
  readonly examples: string[] = [];

  constructor(session: Session, name: string) {
    super(name);
    const { stdout, stderr } = session.io;
    this.session = session;
    this.exitOverride();
    this.helpOption('-h, --help', 'show this');
    this.configureHelp({ showGlobalOptions: true, minWidthToWrap: leastWrapped, optionDescription, styleTitle });
    this.configureOutput({
      writeOut: (text) => session.help.out.push(text),
      writeErr: (text) => session.help.err.push(text),
      getOutHelpWidth: () => stdout.columns || widthElsewhere,
      getErrHelpWidth: () => stderr.columns || widthElsewhere,
      getOutHasColors: () => hasColour(session.io, stdout),
      getErrHasColors: () => hasColour(session.io, stderr),
    });
    this.addHelpText('after', () => this.#exampleHelp());
  }

  override createCommand(name = ''): GrammarCommand {
    return new GrammarCommand(this.session, name);
  }

  /** A group of commands about one thing. */
  group(name: string, description: string): GrammarCommand {
    return this.#add(this.createCommand(name).description(description).helpCommand(false));
  }

  /** A command: `usage` is its name and arguments, `load` brings its code. */
  leaf(
    usage: string,
    description: string,
    examples: readonly string[],
    load: () => Promise<CommandModule>,
  ): GrammarCommand {
    const command = this.#doing(usage, load).description(description);
    command.examples.push(...examples);
    return this.#add(command);
  }

  /** A command that programs use, not people. */
  hidden(usage: string, load: () => Promise<CommandModule>): void {
    this.addCommand(this.#doing(usage, load), { hidden: true });
  }

  #doing(usage: string, load: () => Promise<CommandModule>): GrammarCommand {
    const [name = '', ...args] = usage.split(' ');
    const command = this.createCommand(name);
    for (const arg of args) command.argument(arg);
    return command.action(async () => {
      const { run } = await load();
      this.session.exitCode = (await run(new Cli(this.session.io, command))) ?? 0;
    });
  }

  #add(command: GrammarCommand): GrammarCommand {
    this.addCommand(command);
    return command;
  }

  /** The command line wins over the environment. */
  override parseOptions(argv: string[]): { operands: string[]; unknown: string[] } {
    const rest = super.parseOptions(argv);
    for (const option of this.options) {
      const text = this.session.io.env[environmentName(option)];
      if (!text || option.long === '--version') continue;
      const source = this.getOptionValueSource(option.attributeName());
      if (source !== undefined && source !== 'default') continue;
      this.setOptionValueWithSource(option.attributeName(), fromEnvironment(option, text), 'env');
    }
    return rest;
  }

  override error(message: string): never {
    const what = message
      .replace(/^error: /, '')
      // What was typed in the wrong place may be a secret.
      .replace(/( but got \d+): .*$/s, '$1')
      .replace(
        /\n\(Did you mean (one of )?(.+)\?\)$/,
        (_, several, names) => `; did you mean ${several ?? ''}${names}?`,
      );
    throw new KmsError('usage', what, { hint: `see \`${this.fullName()} --help\`` });
  }

  fullName(): string {
    return this.parent instanceof GrammarCommand ? `${this.parent.fullName()} ${this.name()}` : this.name();
  }

  /** The command above all others. */
  get root(): GrammarCommand {
    return this.parent instanceof GrammarCommand ? this.parent.root : this;
  }

  /** The commands below this one that help tells of. */
  get subcommands(): readonly GrammarCommand[] {
    return this.createHelp()
      .visibleCommands(this)
      .filter((command) => command instanceof GrammarCommand)
      .filter((command) => this.commands.includes(command));
  }

  #exampleHelp(): string {
    if (this.examples.length === 0) return '';
    return `\nExamples:\n${this.examples.map((example) => `  $ ${example}`).join('\n')}`;
  }
}

/** The variable that an option may come from; `--help` and `--version` come from nowhere. */
export function environmentName(option: Option): string {
  return `KMS_${option.name().toUpperCase().replaceAll('-', '_')}`;
}

function fromEnvironment(option: Option, text: string): unknown {
  if (option.isBoolean()) return !/^(0|false|no|off)$/i.test(text);
  if (option.parseArg === repeated) return text.split(',').map((each) => each.trim());
  return text;
}

/** What help says of an option, without its variable. */
export function describeOption(option: Option): string {
  const many = option.parseArg === repeated ? ' (may be repeated)' : '';
  return option.description + many;
}

function optionDescription(option: Option): string {
  const variable = option.long === '--help' || option.long === '--version' ? '' : ` [${environmentName(option)}]`;
  return describeOption(option) + variable;
}

function styleTitle(title: string): string {
  return `\x1b[1m${title}\x1b[22m`;
}
