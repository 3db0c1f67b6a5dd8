// An option of the parser with its declaration: its variable, its description, and how its value is told from the word
// behind it.
import { Option } from 'commander';
import type { Kind } from './grammar/declaration.ts';

/** An option of the parser together with its declaration. */
export class GrammarOption extends Option {
  readonly kind: Kind<unknown>;

  constructor(name: string, kind: Kind<unknown>) {
    const { short, placeholder, about, group, isRepeated, isOptional } = kind;
    const value = placeholder && (isOptional ? ` [${placeholder}]` : ` <${placeholder}>`);
    super(`${short === undefined ? '' : `${short}, `}${name}${value ?? ''}`, about);
    this.kind = kind;
    // The parser would take `--no-x` for an `--x` that is on unless told otherwise; here a name is just a name.
    this.negate = false;
    if (group !== undefined) this.helpGroup(`${group}:`);
    if (isRepeated) this.argParser<readonly string[]>((value, before) => [...(before ?? []), value]);
  }
}

/** Environment variable of an option; `--help` and `--version` have none. */
export function environmentName(option: Option): string {
  return `KMS_${option.name().toUpperCase().replaceAll('-', '_')}`;
}

export function fromEnvironment(option: Option, text: string): unknown {
  if (isRepeated(option)) return text.split(',').map((each) => each.trim());
  return text;
}

export function isRepeated(option: Option): boolean {
  return option instanceof GrammarOption && option.kind.isRepeated === true;
}

/** Description of an option in help, without its variable. */
export function describeOption(option: Option): string {
  const usual = option instanceof GrammarOption ? option.kind.usual : undefined;
  const standard = usual === undefined ? '' : ` (default: ${usual.includes(' ') ? `"${usual}"` : usual})`;
  return option.description + standard + (isRepeated(option) ? ' (may be repeated)' : '');
}

export function optionDescription(option: Option): string {
  const variable = option.long === '--help' || option.long === '--version' ? '' : ` [${environmentName(option)}]`;
  return describeOption(option) + variable;
}

/**
 * The words with the value of each switch that may have one written into it. Otherwise the parser would take whatever
 * follows such a switch for its value, even a name: `--exportable NAME`.
 */
export function withSwitchValues(words: readonly string[], options: readonly Option[]): string[] {
  const switches = new Set(options.filter((option) => isSwitch(option)).map(({ long }) => long));
  const end = words.indexOf('--');
  return words.flatMap((word, n) => {
    if (end >= 0 && n >= end) return [word];
    const before = words[n - 1];
    if (isTruth(word) && switches.has(before)) return [];
    if (!switches.has(word)) return [word];
    const next = words[n + 1];
    return [`${word}=${isTruth(next) ? next : 'true'}`];
  });
}

function isSwitch(option: Option): boolean {
  return option instanceof GrammarOption && option.kind.isOptional === true && option.kind.placeholder === 'true|false';
}

function isTruth(word: string | undefined): boolean {
  return word === 'true' || word === 'false';
}
