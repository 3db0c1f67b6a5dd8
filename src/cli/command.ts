// GrammarCommand is a parsed command of the grammar: options that may also come from the environment or a file, errors
// in the product's own form, help with examples, and code loaded on use. Cli is what that code receives: the outside
// world, and its arguments and options, each validated when it is read.
import { dirname } from 'node:path';
import { Command, type Help, type HelpContext } from 'commander';
import { KmsError } from '../errors.ts';
import { parseAge } from '../model/ages.ts';
import {
  type Commands,
  type Completes,
  type Declared,
  enumeration,
  isNameKind,
  type Kind,
  type Kinds,
  type NameKind,
  settingName,
  type Values,
} from './grammar/declaration.ts';
import { globals } from './grammar/option-sets.ts';
import {
  environmentName,
  fromEnvironment,
  GrammarOption,
  optionDescription,
  withSwitchValues,
} from './grammar-option.ts';
import { formatHelp, styleTitle } from './help-format.ts';
import { hasColour, type Io } from './io.ts';
import { commandMeant, optionMeant } from './suggestions.ts';

/** State of the parser: the outside world, collected help, and the exit code. */
export interface Session {
  readonly io: Io;
  readonly help: { readonly out: string[]; readonly err: string[] };
  exitCode: number;
  /** Runs another command line in this process; resolves to its exit code. */
  run(io: Io): Promise<number>;
  /** Exit code of wrong usage, if the command has one of its own. */
  usageCode?: number | undefined;
}

/** Options from a file, used where neither the command line nor the environment gives one. */
export interface OptionFile {
  readonly path: string;
  /** Values (text, texts or a boolean) with their lines, by the options' names on the command line. */
  readonly given: ReadonlyMap<string, { readonly value: unknown; readonly line: number }>;
}

/** Interface of a command to its arguments and options V. */
export class Cli<out V = object> {
  readonly io: Io;
  readonly #command: GrammarCommand;
  readonly #kinds: Kinds<V>;
  readonly #file: OptionFile | undefined;

  constructor(io: Io, command: GrammarCommand, kinds: Kinds<V>, file?: OptionFile) {
    this.io = io;
    this.#command = command;
    this.#kinds = kinds;
    this.#file = file;
  }

  /** The same command with the options of a file. */
  withFile(file: OptionFile): Cli<V> {
    return new Cli(this.io, this.#command, this.#kinds, file);
  }

  /** Value of this argument or option, as its kind parses it. */
  get<N extends keyof V & string>(name: N): V[N] {
    const given = this.#command.given(name) ?? this.#file?.given.get(name)?.value;
    return this.#kinds[name].read(given, { name, io: this.base(name), seeHelp: this.seeHelp });
  }

  /**
   * Validates all options, typed or in the file, before anything is opened or done, and that none is missing. Throws
   * `usage`.
   */
  checkTyped(): void {
    for (const name in this.#kinds) if (!name.startsWith('-') || this.isChosen(name)) this.get(name);
    const missing = Object.keys(this.#kinds).filter((name) => {
      const { isRequired }: Kind<unknown> = this.#kinds[name as keyof V];
      return isRequired && this.#command.given(name) === undefined && !this.#isFromFile(name);
    });
    if (missing.length > 1) throw this.wrong(`${enumeration(missing)} are missing`);
    if (missing.length === 1) throw this.wrong(`${missing[0]} is missing`);
  }

  /** Names of the appliance's things that the command was given, with the kind of each. */
  get namedThings(): readonly { readonly kind: NameKind; readonly name: string }[] {
    return Object.entries<Kind<unknown>>(this.#kinds).flatMap(([option, { completes }]) => {
      if (!isNameKind(completes)) return [];
      const given = this.#command.given(option);
      return [given].flat().flatMap((name) => (typeof name === 'string' ? [{ kind: completes, name }] : []));
    });
  }

  /** The ages, in milliseconds, that options for moments were given: each run counts them from its own start. */
  get ages(): readonly number[] {
    return Object.entries<Kind<unknown>>(this.#kinds).flatMap(([option, { isMoment }]) => {
      const given = isMoment ? this.#command.given(option) : undefined;
      return typeof given === 'string' ? (parseAge(given) ?? []) : [];
    });
  }

  /** Base for relative paths in the option: the directory of the file if the file gives it. */
  base(option: keyof V & string): Pick<Io, 'cwd'> {
    return this.#file && this.#isFromFile(option) ? { cwd: dirname(this.#file.path) } : this.io;
  }

  /** Whether the option is typed or in the file, not merely in the environment. */
  isChosen(option: keyof V & string): boolean {
    return this.isTyped(option) || this.#isFromFile(option);
  }

  #isFromFile(option: string): boolean {
    return this.#file?.given.has(option) === true && this.#command.given(option) === undefined;
  }

  /**
   * Rewrites an error about options that the file gives: its name and line come first, and options have their names in
   * the file.
   */
  inFile(error: unknown): unknown {
    const file = this.#file;
    if (!file || !(error instanceof KmsError)) return error;
    const isElsewhere = (option: string) =>
      [this.#command, this.grammar].some((each) => each.given(option) !== undefined);
    const own = error.message.match(optionNames)?.find((option) => file.given.has(option) && !isElsewhere(option));
    if (own === undefined) return error;
    const message = error.message.replace(optionNames, (name) => (isElsewhere(name) ? name : settingName(name)));
    const { code, hint, cause } = error;
    return new KmsError(code, `${file.path}:${file.given.get(own)?.line}: ${message}`, { hint, cause });
  }

  /** Whether the option is on the command line, not in the environment. */
  isTyped(option: keyof V & string): boolean {
    return this.#command.isTyped(option);
  }

  /** Compares the sources of two options: positive if the first one wins, 0 if both come from the same source. */
  outranks(option: keyof V & string, other: keyof V & string): number {
    const rank = (name: keyof V & string): number => {
      if (this.#isFromFile(name)) return 1;
      return this.#command.given(name) === undefined ? 0 : this.isTyped(name) ? 3 : 2;
    };
    return rank(option) - rank(other);
  }

  /** The options of every command. */
  get globals(): Cli<Values<typeof globals>> {
    return new Cli(this.io, this.#command.root, globals, this.#file);
  }

  /** Whether the output is JSON. */
  get json(): boolean {
    return this.globals.get('--json');
  }

  /**
   * Runs another command line here, with the global options of this one. Resolves to its exit code; what goes wrong has
   * been said then.
   */
  run(words: readonly string[], more: Pick<Io, 'breakingGlass'>): Promise<number> {
    const { root } = this.#command;
    const typed = root.options.flatMap(({ long = '', required }) => {
      if (!root.isTyped(long)) return [];
      return required ? [long, String(root.given(long))] : [long];
    });
    const own = Object.fromEntries(Object.entries(more).map(([name, value]) => [name, { value }]));
    // The last of two values of an option wins.
    const io: Io = Object.create(this.io, { ...own, args: { value: [...typed, ...words] } });
    return root.session.run(io);
  }

  /** The whole grammar. */
  get grammar(): GrammarCommand {
    return this.#command.root;
  }

  get seeHelp(): string {
    return this.#command.seeHelp;
  }

  /** The usage error for input that makes no sense. */
  wrong(message: string): KmsError {
    return new KmsError('usage', message, { hint: this.seeHelp });
  }

  /** Refuses these options if typed or in the file: without `needed` they would have no effect. */
  refuseWithout(needed: string, options: readonly (keyof V & string)[]): void {
    for (const option of options) {
      if (this.isChosen(option)) throw this.wrong(`${option} goes with ${needed}`);
    }
  }

  /**
   * The same command with other streams, and with these global options, by long name, set as if typed; undefined ones
   * as if not given at all.
   */
  withOptions(io: Io, options: ReadonlyMap<string, string | undefined>): Cli<V> {
    const { root } = this.#command;
    for (const option of root.options) {
      const { long = '' } = option;
      if (!options.has(long)) continue;
      const value = options.get(long);
      root.setOptionValueWithSource(option.attributeName(), value, value === undefined ? undefined : 'cli');
    }
    return new Cli(io, this.#command, this.#kinds, this.#file);
  }
}

/** The Cli of a command declared like D. */
export type CliOf<D> = Cli<Values<D>>;

/** Drops undefined entries: an option that was not given is not sent. */
export function given<T extends object>(entries: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  // Cast: undefined entries are gone.
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}

/** Runs a command and returns the exit code; none means 0. */
// biome-ignore lint/suspicious/noConfusingVoidType: most commands return nothing
type Run<V> = (cli: Cli<V>) => Promise<number | void>;

/** A module with one function per command. */
type Module<S> = { readonly [N in keyof S]: Run<S[N]> };

const optionNames = /--[a-z][a-z-]*/g;

/** The command that the words after `command` name. */
export function commandOn([word, ...rest]: readonly string[], command: GrammarCommand): GrammarCommand {
  if (word === undefined || word === '--') return command;
  if (word.startsWith('-')) {
    const takesNext = command.root.options.some(({ long, required }) => required && long === word);
    return commandOn(takesNext ? rest.slice(1) : rest, command);
  }
  const next = command.subcommands.find((each) => each.name() === word);
  return next ? commandOn(rest, next) : command;
}

/** Width of help that does not go to a terminal. */
const widthElsewhere = 100;
/** Minimum width of wrapped descriptions. */
const leastWrapped = 20;

export class GrammarCommand extends Command {
  readonly session: Session;
  /** Examples as typed; shown at the end of the help. */
  readonly examples: string[] = [];
  /** Completions of its arguments, by their names in the grammar. */
  readonly #arguments = new Map<string, Completes>();
  /** Adds a group's commands on first use; most runs never need them. */
  #fill: (() => void) | undefined;
  /** The text of the command alone, if it is not its help. */
  overview?: () => string;
  /** Exit code of wrong usage, if it is not the usual one. */
  usageCode: number | undefined;
  /** Loads the command's code; groups have none. */
  load?: () => Promise<unknown>;

  constructor(session: Session, name: string) {
    super(name);
    const { stdout, stderr } = session.io;
    this.session = session;
    this.exitOverride();
    this.helpOption('-h, --help', 'show this');
    this.configureHelp({ minWidthToWrap: leastWrapped, optionDescription, styleTitle, formatHelp });
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
    const group = this.createCommand(name).description(description).helpCommand(false);
    // Keeps the order: commands added before come first.
    this.#filled();
    this.addCommand(group);
    return group;
  }

  /** Adds commands; `load` imports the module with their functions. */
  add<S>(commands: Commands<S>, load: () => Promise<Module<NoInfer<S>>>): this {
    const before = this.#fill;
    const fill = (): void => {
      before?.();
      for (const name in commands) this.#addOne(commands[name], async () => (await load())[name]);
    };
    if (this.parent) this.#fill = fill;
    else fill();
    return this;
  }

  #filled(): void {
    const fill = this.#fill;
    this.#fill = undefined;
    fill?.();
  }

  /** Every lookup of a group's commands goes through here. */
  override createHelp(): Help {
    this.#filled();
    return super.createHelp();
  }

  #addOne<V>({ name, about, examples, kinds, usageCode }: Declared<V>, load: () => Promise<Run<V>>): void {
    const command = this.createCommand(name).description(about).declare(kinds);
    if (name === 'list') command.alias('ls');
    command.examples.push(...examples);
    command.load = load;
    command.usageCode = usageCode;
    command.action(async () => {
      const run = await load();
      const cli = new Cli(this.session.io, command, kinds);
      cli.checkTyped();
      this.session.exitCode = (await run(cli)) ?? 0;
    });
    this.addCommand(command, { hidden: about === '' });
  }

  /** Declares these arguments and options. */
  declare<V>(kinds: Kinds<V>): this {
    for (const name in kinds) {
      const kind: Kind<unknown> = kinds[name];
      if (name.startsWith('-')) this.addOption(new GrammarOption(name, kind));
      else {
        this.argument(name);
        this.#arguments.set(name, kind.completes);
      }
    }
    return this;
  }

  /** Raw value of the argument or option with this name in the grammar. */
  given(name: string): unknown {
    const option = this.options.find(({ long }) => long === name);
    if (option) return this.getOptionValue(option.attributeName());
    const at = [...this.#arguments.keys()].indexOf(name);
    return name.endsWith('...]') ? this.args.slice(at) : this.args[at];
  }

  /** Completions for the argument at this index. */
  completesArgument(at: number): Completes {
    return [...this.#arguments.values()][at];
  }

  isTyped(name: string): boolean {
    const option = this.options.find(({ long }) => long === name);
    return option !== undefined && this.getOptionValueSource(option.attributeName()) === 'cli';
  }

  /** The command line takes precedence over the environment. */
  override parseOptions(argv: string[]): { operands: string[]; unknown: string[] } {
    this.#filled();
    const words = withSwitchValues(argv, this.options);
    const rest = this.#withoutHidden(words, () => super.parseOptions(words));
    for (const option of this.options) {
      const text = this.session.io.env[environmentName(option)];
      if (!text || option.long === '--version') continue;
      const source = this.getOptionValueSource(option.attributeName());
      if (source !== undefined && source !== 'default') continue;
      this.setOptionValueWithSource(option.attributeName(), fromEnvironment(option, text), 'env');
    }
    return rest;
  }

  /** Parses without those of its options that the command on the line has itself, such as `--version N`. */
  #withoutHidden<T>(argv: readonly string[], parse: () => T): T {
    const { options } = this;
    const target = commandOn(argv, this);
    const own = options.filter(({ long }) => target === this || !target.options.some((each) => each.long === long));
    // Commander declares the list as readonly, but reads it for each argument.
    Object.assign(this, { options: own });
    try {
      return parse();
    } finally {
      Object.assign(this, { options });
    }
  }

  override error(message: string): never {
    const what = this.#withMeant(message.replace(/^error: /, ''))
      // A misplaced argument may be a secret.
      .replace(/( but got \d+): .*$/s, '$1')
      .replace(
        /\n\(Did you mean (one of )?(.+)\?\)$/,
        (_, several, names) => `; did you mean ${several ?? ''}${names}?`,
      );
    const isFiles = message.includes('too many arguments') && this.options.some(({ short }) => short === '-f');
    throw new KmsError('usage', what, {
      hint: isFiles ? 'each file takes its own -f, and a directory one' : this.seeHelp,
    });
  }

  /** Names what was meant by a word of another program, or by a group's command without its group. */
  #withMeant(message: string): string {
    const [said, kind, typed = ''] = /^unknown (option|command) '(.+?)'/.exec(message) ?? [];
    if (said === undefined) return message;
    const isOfRoot = this === this.root;
    const meant = kind === 'option' ? optionMeant(this, typed) : isOfRoot ? commandMeant(this, typed) : undefined;
    return meant === undefined ? message : `${said}; did you mean ${meant}?`;
  }

  /** `kms` alone shows what fits on a screen. */
  override outputHelp(context?: HelpContext | ((text: string) => string)): void {
    if (typeof context === 'function') throw new KmsError('internal', 'help is not changed by a function');
    if (context?.error && this.overview) this.session.help.err.push(this.overview());
    else super.outputHelp(context);
  }

  get seeHelp(): string {
    return `see \`${this.fullName()} --help\``;
  }

  fullName(): string {
    return this.parent instanceof GrammarCommand ? `${this.parent.fullName()} ${this.name()}` : this.name();
  }

  /** The root command. */
  get root(): GrammarCommand {
    return this.parent instanceof GrammarCommand ? this.parent.root : this;
  }

  /** Direct subcommands that help shows. */
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
