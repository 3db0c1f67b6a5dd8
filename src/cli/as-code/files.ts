// Configuration files: YAML 1.2 (core schema) or JSON, one or more documents, each an object with `kind` and `name` or
// a list of such. Everything wrong is reported with file, line and column, and with what was probably meant.
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { addAbortSignal } from 'node:stream';
import type { Alias, Document, LineCounter, Scalar, YAMLError } from 'yaml';
import { type FileProblem, fileProblems, isKindName, type KindName } from '../../api/configuration.ts';
import { KmsError } from '../../errors.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import { nearest } from '../../model/nearest.ts';
import { fileError, readSmallFile, textIn } from '../files.ts';
import { type Io, pathFrom } from '../io.ts';
import { visible } from '../text.ts';
import type { Wanted } from './kind.ts';
import { kinds } from './kind-table.ts';
import { markProblems } from './mark.ts';

/** An object of a file, and where in the file it and its fields are. */
export interface FileObject extends Wanted {
  /** File, line and column of a field, or of the nearest thing around it: `keys.yaml:12:3`. */
  at(path: readonly (string | number)[]): string;
}

/** Bytes of one file. */
const longestFile = 8 * 1024 * 1024;
/** Objects of all files. */
const mostObjects = 20_000;
/** Anchors, and aliases, of one file: each alias is looked up in the whole document. */
const mostReferences = 32;
/** Values of one file, those behind aliases counted each time. */
const mostValues = 1_000_000;
/** Levels of an object: free-form fields have 32. */
const deepest = 40;
/** Problems that are told. */
const mostTold = 20;

type Yaml = typeof import('yaml');
type Path = readonly (string | number)[];

/** Problems of files, in words with their places. */
export class FileProblems {
  readonly #told: string[] = [];
  #count = 0;

  add(place: string, message: string): void {
    if (++this.#count <= mostTold) this.#told.push(visible(`${place}: ${message}`));
  }

  /** Throws `invalid`, with every problem on a line of its own, if there are any. */
  refuse(): void {
    if (this.#count === 0) return;
    const rest = this.#count - this.#told.length;
    throw new FilesRefused(this.#count, rest > 0 ? [...this.#told, `and ${rest} more`] : this.#told);
  }
}

/** Files that are refused, with a line for each problem. */
export class FilesRefused extends KmsError {
  readonly lines: readonly string[];

  constructor(count: number, lines: readonly string[]) {
    const what = count === 1 ? 'a problem' : `${count} problems`;
    super('invalid', count === 1 ? (lines[0] ?? what) : `${what} in the files; nothing was done`);
    this.lines = count === 1 ? [] : lines;
  }
}

type Input = Pick<Io, 'cwd' | 'stdin' | 'signal'>;

/**
 * The objects of the files, in their order: `-` is stdin, and a directory has all its files, by name. Throws
 * `FilesRefused`, and what reading files throws.
 *
 * @param isAll whether they are all that there shall be: then a file without any object, which whatever wrote it may
 * have left empty, is a problem; an empty list says that it is meant.
 */
export async function readConfiguration(
  io: Input,
  given: readonly string[],
  isAll: boolean,
): Promise<readonly FileObject[]> {
  const yaml = await import('yaml');
  const problems = new FileProblems();
  const objects: FileObject[] = [];
  if (given.filter((name) => name === '-').length > 1) throw new KmsError('usage', 'expected stdin (-) once');
  for (const name of (await Promise.all(given.map((each) => filesAt(io, each)))).flat()) {
    const bytes =
      name === '-' ? await readStdin(io) : await readSmallFile(pathFrom(io, name), what, undefined, longestFile);
    const shown = name === '-' ? 'stdin' : name;
    const reader = new Reader(yaml, shown, problems);
    objects.push(...reader.objects(textIn(bytes, shown, what)));
    if (objects.length > mostObjects) problems.add(name, `expected at most ${mostObjects} objects in all files`);
    problems.refuse();
    if (isAll && reader.isEmpty) problems.add(shown, 'holds no object: write [] if that is meant');
  }
  refuseTwins(objects, problems);
  problems.refuse();
  return objects;
}

const what = 'a configuration';

/** A file, or the files of a directory: neither those of directories in it, nor hidden ones, nor JSON Schemas. */
async function filesAt(io: Input, name: string): Promise<readonly string[]> {
  if (name === '-') return [name];
  const path = pathFrom(io, name);
  // Whatever is wrong with it is told when it is read.
  const isDirectory = await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (!isDirectory) return [name];
  const entries = await readdir(path, { withFileTypes: true }).catch((error) => {
    throw fileError('read', path, error);
  });
  const files = entries.filter(
    (entry) =>
      !entry.isDirectory() && /^[^.].*\.(?:ya?ml|json)$/.test(entry.name) && !entry.name.endsWith('.schema.json'),
  );
  if (files.length > 0) return files.map((entry) => join(name, entry.name)).sort();
  throw new KmsError('invalid', `${name}: expected files *.yaml, *.yml or *.json in this directory, found none`, {
    hint: 'directories in it are not read: name each with -f',
  });
}

async function readStdin({ stdin, signal }: Input): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of addAbortSignal(signal, stdin)) {
    const bytes = Buffer.from(chunk);
    chunks.push(bytes);
    length += bytes.length;
    if (length > longestFile) throw new KmsError('invalid', `stdin is too large to hold ${what}`);
  }
  return Buffer.concat(chunks);
}

/** One object has one description. */
function refuseTwins(objects: readonly FileObject[], problems: FileProblems): void {
  const seen = new Map<string, FileObject>();
  for (const object of objects) {
    const key = JSON.stringify([object.kind, kinds[object.kind].nameKey(object.name)]);
    const first = seen.get(key);
    if (first)
      problems.add(object.at(['name']), `${object.kind} ${object.name} is described at ${first.at(['name'])} already`);
    else seen.set(key, object);
  }
}

class Reader {
  readonly #yaml: Yaml;
  readonly #file: string;
  readonly #problems: FileProblems;
  readonly #lines: LineCounter;
  #values = 0;
  /** Whether neither objects nor a list of them were found. */
  isEmpty = true;

  constructor(yaml: Yaml, file: string, problems: FileProblems) {
    this.#yaml = yaml;
    this.#file = file;
    this.#problems = problems;
    this.#lines = new yaml.LineCounter();
  }

  objects(text: string): FileObject[] {
    try {
      if (!this.#hasFewReferences(text)) return [];
      return this.#documents(text).flatMap((document) => this.#objectsIn(document));
    } catch (error) {
      // The library recurses.
      if (!(error instanceof RangeError)) throw error;
      this.#problems.add(this.#file, 'nests too deep');
      return [];
    }
  }

  /** Whether anchors and aliases are no more than anyone writes by hand: before any of them is looked up. */
  #hasFewReferences(text: string): boolean {
    const { CST, Lexer } = this.#yaml;
    const found = { alias: 0, anchor: 0 };
    let isContent = false;
    for (const token of new Lexer().lex(text)) {
      const type: string | null = isContent ? null : CST.tokenType(token);
      // The content of a scalar may begin like a reference.
      isContent = type === 'scalar';
      if (type !== 'alias' && type !== 'anchor') continue;
      if (++found[type] <= mostReferences) continue;
      const what = type === 'alias' ? 'aliases (*)' : 'anchors (&)';
      this.#problems.add(this.#file, `expected at most ${mostReferences} ${what}`);
      return false;
    }
    return true;
  }

  #documents(text: string): readonly Document.Parsed[] {
    const { parseAllDocuments } = this.#yaml;
    const options = { version: '1.2', schema: 'core', prettyErrors: false, uniqueKeys: false } as const;
    // Tags of older schemas, which make dates, bytes and sets, are refused as all others.
    const values = { resolveKnownTags: false, intAsBigInt: true };
    const documents = parseAllDocuments(text, { ...options, ...values, lineCounter: this.#lines });
    // Empty, or with comments alone.
    if (!Array.isArray(documents)) return [];
    const errors = documents.flatMap(({ errors, warnings }) => [...errors, ...warnings]);
    // One that follows from another says the same at each level.
    const said = new Set<string>();
    for (const error of errors) {
      const problem = problemOf(error);
      if (!said.has(problem)) this.#problems.add(this.#place(error.pos[0]), problem);
      said.add(problem);
    }
    return errors.length > 0 ? [] : documents;
  }

  #objectsIn(document: Document.Parsed): FileObject[] {
    const { isScalar, isSeq } = this.#yaml;
    const { contents } = document;
    if (contents === null || (isScalar(contents) && contents.value === null)) return [];
    this.isEmpty = false;
    const nodes = isSeq(contents) ? contents.items : [contents];
    return nodes.flatMap((node) => this.#object(node, document));
  }

  #object(given: unknown, document: Document.Parsed): FileObject[] {
    const node = this.#resolved(given, document);
    const place = this.#placeOf(node);
    const before = this.#problems;
    const value = this.#value(given, document, 1);
    if (value === failed) return [];
    if (!isJsonObject(value)) {
      before.add(place, 'expected an object with kind and name');
      return [];
    }
    return this.#checked(value, (path) => this.#at(node, document, path));
  }

  #checked(value: JsonObject, at: FileObject['at']): FileObject[] {
    const { kind, name, ...fields } = value;
    if (typeof kind !== 'string' || !isKindName(kind)) {
      const near = typeof kind === 'string' ? nearest(kind, Object.keys(kinds)) : undefined;
      const question = near === undefined ? '' : `; did you mean ${near}?`;
      const what = kind === undefined ? 'kind: is required' : `unknown kind '${String(kind)}'`;
      this.#problems.add(at(['kind']), `${what}; expected one of ${Object.keys(kinds).join(', ')}${question}`);
      return [];
    }
    const found = [...fileProblems(kind, value), ...markProblems(fields, '--managed-by')];
    for (const problem of found) this.#problems.add(at(problem.path), wordsFor(problem, kind));
    return found.length > 0 || typeof name !== 'string' ? [] : [{ kind, name, fields, at }];
  }

  #resolved(node: unknown, document: Document.Parsed): unknown {
    return this.#yaml.isAlias(node) ? (node as Alias).resolve(document) : node;
  }

  /** The JSON value of a node, or `failed`, which was reported. */
  #value(given: unknown, document: Document.Parsed, depth: number): unknown {
    const { isAlias, isMap, isScalar, isSeq } = this.#yaml;
    const node = this.#resolved(given, document);
    const refuse = (message: string, at = node): typeof failed => {
      this.#problems.add(this.#placeOf(at), message);
      return failed;
    };
    if (isAlias(given) && node === undefined) {
      return refuse(`there is no anchor &${given.source} before it in this document`, given);
    }
    if (++this.#values > mostValues) throw new RangeError('too many values');
    if (depth > deepest) return refuse(`nests deeper than ${deepest} levels`);
    if (isScalar(node)) return this.#scalar(node, refuse);
    if (isSeq(node)) {
      const items = node.items.map((item) => this.#value(item, document, depth + 1));
      return items.includes(failed) ? failed : items;
    }
    // A key without a value.
    if (!isMap(node)) return node === null || node === undefined ? null : refuse('expected a plain value');
    const entries = new Map<string, unknown>();
    for (const { key, value } of node.items) {
      if (!isScalar(key)) return refuse('expected fields, each as NAME: VALUE', key ?? node);
      if (key.value === '<<' && [value, ...(isSeq(value) ? value.items : [])].some(isAlias)) {
        return refuse('merge keys (<<) are no part of YAML 1.2', key);
      }
      const name = typeof key.value === 'bigint' ? String(key.value) : String(key.source ?? key.value);
      if (entries.has(name)) {
        this.#problems.add(this.#placeOf(key), `${name} is given twice`);
        return failed;
      }
      entries.set(name, this.#value(value, document, depth + 1));
    }
    return [...entries.values()].includes(failed) ? failed : Object.fromEntries(entries);
  }

  #scalar({ value }: Scalar, refuse: (message: string) => typeof failed): unknown {
    if (typeof value === 'bigint') {
      const number = Number(value);
      // Exactly, or in the digits by which the API shows such a number.
      const isKept = Number.isFinite(number) && (BigInt(number) === value || String(number) === String(value));
      return isKept ? number : refuse('holds a number that cannot be kept exactly');
    }
    if (typeof value === 'number' && !Number.isFinite(value)) return refuse('holds a number out of range');
    return value ?? null;
  }

  /** Place of what the path leads to, or of the last thing on the way that is there. */
  #at(node: unknown, document: Document.Parsed, path: Path): string {
    const { isMap, isScalar, isSeq } = this.#yaml;
    let place = this.#placeOf(node);
    let here = this.#resolved(node, document);
    for (const part of path) {
      if (isMap(here)) {
        const pair = here.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
        if (!pair) break;
        place = this.#placeOf(pair.key);
        here = this.#resolved(pair.value, document);
      } else if (isSeq(here)) {
        here = this.#resolved(here.items[Number(part)], document);
        place = this.#placeOf(here);
      } else break;
    }
    return place;
  }

  #placeOf(node: unknown): string {
    const range: unknown = Object(node).range;
    return this.#place(Array.isArray(range) ? Number(range[0]) : 0);
  }

  #place(offset: number): string {
    const { line, col } = this.#lines.linePos(offset);
    return `${this.#file}:${line || 1}:${col || 1}`;
  }
}

const failed = Symbol('a value that was refused');

function wordsFor({ path, message, known }: FileProblem, kind: KindName): string {
  const field = path.join('.');
  if (known === undefined) return `${field}: ${message}`;
  const own = String(path.at(-1));
  const near = nearest(own, known);
  const question = near === undefined ? `; expected one of ${known.join(', ')}` : `; did you mean ${near}?`;
  return `unknown field '${field}' of ${kind}${question}`;
}

/** The problem in words that quote no value. */
function problemOf({ code, message }: YAMLError): string {
  // The library recurses.
  if (/call stack/i.test(message)) return 'nests too deep';
  if (code === 'TAG_RESOLVE_FAILED') return 'expected plain values, found a tag (!)';
  return `expected YAML: ${message.charAt(0).toLowerCase()}${message.slice(1).replace(/: .*$/s, '')}`;
}
