// The configuration file of `kms serve`: YAML 1.2 (core schema) or JSON, with options in camel case. Values and their
// lines are read here; each option's kind then checks its value as if it had been typed.
import type { Stats } from 'node:fs';
import type { Scalar, YAMLError } from 'yaml';
import { KmsError } from '../errors.ts';
import { nearest } from '../model/nearest.ts';
import type { OptionFile } from './command.ts';
import { readSmallFile, textIn } from './files.ts';
import { type Kind, settingName } from './grammar/declaration.ts';
import { settings } from './grammar/serving.ts';
import { visible } from './text.ts';

/** Throws `usage` for anything but known options with values, `refused` for a file that others can write to. */
export async function readConfigFile(path: string, seeHelp: string): Promise<OptionFile> {
  let info: Stats | undefined;
  const bytes = await readSmallFile(path, 'a configuration', async (file) => {
    const found = await file.stat();
    if (!found.isFile()) return;
    (await import('../platform/ownership.ts')).refuseWritable(path, found);
    info = found;
  });
  const given = await optionsIn(textIn(bytes, path, 'a configuration'), path, seeHelp);
  const secret = [...given].find(([, { value }]) => typeof value === 'string' && holdsPassword(value));
  if (secret && info) {
    const { refuseExposed } = await import('../platform/ownership.ts');
    refuseExposed(path, info, `a password in ${settingName(secret[0])}`, 'change the password');
  }
  return { path, given };
}

/** Addresses of several hosts are no URLs for the platform. */
function holdsPassword(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\/[^/?#@]*:[^/?#]+@/i.test(text);
}

type Yaml = typeof import('yaml');

/** One entry of the file; `value` is a node of the library. */
interface Entry {
  readonly name: string;
  readonly line: number;
  readonly value: unknown;
}

/** The library is loaded here, so that no other command waits for it. */
async function optionsIn(text: string, path: string, seeHelp: string): Promise<OptionFile['given']> {
  const yaml = await import('yaml');
  const wrong = (line: number, problem: string): KmsError =>
    new KmsError('usage', `${path}:${line}: ${problem}`, { hint: seeHelp });
  const given = new Map<string, Entry>();
  for (const { name, line, value } of entriesOf(text, yaml, wrong)) {
    const setting = settings.get(name);
    if (!setting) {
      // A name in kebab case also gets a suggestion.
      const near = nearest(settingName(`--${name}`), [...settings.keys()]);
      throw wrong(line, `unknown option '${visible(name)}'${near === undefined ? '' : `; did you mean ${near}?`}`);
    }
    const read = readNode(value, setting.kind, yaml);
    if ('problem' in read) throw wrong(line, `${name}: ${read.problem}`);
    given.set(setting.option, { name, line, value: read.value });
  }
  return given;
}

/** The entries in their order, each value as the library has it. */
function entriesOf(text: string, yaml: Yaml, wrong: (line: number, problem: string) => KmsError): readonly Entry[] {
  const { isAlias, isMap, isScalar, LineCounter, parseDocument } = yaml;
  needFewReferences(text, yaml, wrong);
  const lineCounter = new LineCounter();
  const lineAt = (range: readonly number[] | null | undefined) => lineCounter.linePos(range?.[0] ?? 0).line;
  // The library compares each key with all others; a look-up is enough here.
  const options = { version: '1.2', schema: 'core', prettyErrors: false, uniqueKeys: false, lineCounter } as const;
  // Tags of older schemas, which make dates and bytes, are refused as all others.
  const document = parseDocument(text, { ...options, resolveKnownTags: false });
  const [error] = [...document.errors, ...document.warnings];
  if (error) throw wrong(lineAt(error.pos), problemOf(error));
  const { contents } = document;
  // An empty file, or one with comments alone.
  if (contents === null || (isScalar(contents) && contents.value === null)) return [];
  if (!isMap(contents)) throw wrong(lineAt(contents.range), 'expected options, each as NAME: VALUE');
  const seen = new Set<string>();
  return contents.items.map(({ key, value }) => {
    if (!isScalar(key)) throw wrong(lineAt(contents.range), 'expected options, each as NAME: VALUE');
    const name = String(key.value);
    if (seen.has(name)) throw wrong(lineAt(key.range), `${visible(name)} is given twice`);
    seen.add(name);
    const node = isAlias(value) ? value.resolve(document) : value;
    return { name, line: lineAt(key.range), value: node };
  });
}

/** Each look-up of an alias reads the whole document. */
const mostReferences = 32;

/** Throws for more anchors, or more aliases, than anyone writes by hand: before any of them is looked up. */
function needFewReferences(text: string, { CST, Lexer }: Yaml, wrong: (line: number, problem: string) => KmsError) {
  const found = { alias: 0, anchor: 0 };
  let line = 1;
  let isContent = false;
  for (const token of new Lexer().lex(text)) {
    const type: string | null = isContent ? null : CST.tokenType(token);
    // The content of a scalar may begin like a reference.
    isContent = type === 'scalar';
    if ((type === 'alias' || type === 'anchor') && ++found[type] > mostReferences) {
      throw wrong(line, `expected at most ${mostReferences} ${type === 'alias' ? 'aliases (*)' : 'anchors (&)'}`);
    }
    line += token.split('\n').length - 1;
  }
}

/** The value in the form that kinds read: text, a list of texts, or a boolean. */
function readNode(
  node: unknown,
  kind: Kind<unknown>,
  { isScalar, isSeq }: Yaml,
): { readonly value: unknown } | { readonly problem: string } {
  const value = isScalar(node) ? node.value : undefined;
  if (kind.placeholder === undefined) {
    return typeof value === 'boolean' ? { value } : { problem: `expected true or false, got ${shown(node, value)}` };
  }
  if (!kind.isRepeated) {
    const text = isScalar(node) ? textOf(node) : undefined;
    return text === undefined ? { problem: `expected text or a number, got ${shown(node, value)}` } : { value: text };
  }
  const texts = isSeq(node) ? node.items.map((item) => (isScalar(item) ? textOf(item) : undefined)) : [undefined];
  return texts.includes(undefined)
    ? { problem: `expected a list of texts, such as [${kind.placeholder}]` }
    : { value: texts };
}

/** Text, or a number as written, so that the option judges its form. Control characters are refused. */
function textOf({ value, source }: Scalar): string | undefined {
  if (typeof value === 'number') return source ?? String(value);
  return typeof value === 'string' && value.isWellFormed() && !/\p{Cc}/u.test(value) ? value : undefined;
}

function shown(node: unknown, value: unknown): string {
  if (value === null || node === null) return 'nothing';
  if (typeof value === 'string') return /\p{Cc}/u.test(value) ? 'text with a control character' : `"${value}"`;
  return typeof value === 'boolean' ? String(value) : 'something else';
}

/** The problem in words that quote no value, which may be secret. */
function problemOf({ code, message }: YAMLError): string {
  if (code === 'MULTIPLE_DOCS') return 'expected one document, found several';
  if (code === 'TAG_RESOLVE_FAILED') return 'expected plain values, found a tag (!)';
  return `expected YAML: ${message.charAt(0).toLowerCase()}${message.slice(1).replace(/: .*$/s, '')}`;
}
