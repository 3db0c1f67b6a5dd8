// JSON whose numbers are looked at as they were written, so that none changes silently: one that a double cannot keep
// is named, and so refused. Only numbers that are kept count; what nobody reads costs nothing.

/** Which numbers of a JSON text are kept: all of them, or those in some fields of an object. */
export type Kept = 'all' | ReadonlyMap<string, Kept>;

export interface ExactJson {
  readonly value: unknown;
  /** The fields, joined by dots, in which a number stands that a double cannot keep: each once, empty for the whole. */
  readonly inexact: readonly string[];
}

export const inexactNumber = 'holds a number that cannot be kept exactly: send it as a string';

/**
 * Sixteen digits, perhaps with a point among them, or an exponent that may lead to nothing: without either, every
 * number is kept.
 */
const suspicious = /[0-9]{16}|[0-9.]{17}|[0-9][eE]-[0-9]{3}/;

/** Parses as `JSON.parse` does, and throws what it throws. */
export function parseExactly(text: string, kept: Kept = 'all'): ExactJson {
  const value: unknown = JSON.parse(text);
  if (!suspicious.test(text)) return { value, inexact: [] };
  const inexact = new Set<string>();
  new Walk(text, inexact).value(kept, '');
  return { value, inexact: [...inexact] };
}

/** What is wrong with a number of parsed JSON as something to keep; undefined when nothing is. */
export function numberProblem(value: number): string | undefined {
  return Number.isFinite(value) ? undefined : 'holds a number out of range';
}

/** What is wrong with the numbers anywhere in parsed JSON; undefined when nothing is. */
export function numberProblemIn({ value, inexact }: ExactJson): string | undefined {
  if (inexact.length > 0) return inexactNumber;
  const waiting = [value];
  while (waiting.length > 0) {
    const item = waiting.pop();
    const problem = typeof item === 'number' ? numberProblem(item) : undefined;
    if (problem !== undefined) return problem;
    if (typeof item === 'object' && item !== null) for (const each of Object.values(item)) waiting.push(each);
  }
  return undefined;
}

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;

/**
 * One way through a text that is known to be JSON. It nests as deep as what is kept does, however deep the text nests.
 */
class Walk {
  readonly #text: string;
  readonly #inexact: Set<string>;
  #at = 0;

  constructor(text: string, inexact: Set<string>) {
    this.#text = text;
    this.#inexact = inexact;
  }

  /** Passes one value. */
  value(kept: Kept | undefined, path: string): void {
    this.#space();
    if (kept !== undefined && kept !== 'all' && this.#text.charCodeAt(this.#at) === openBrace) this.#object(kept, path);
    else this.#pass(kept === 'all' ? path : undefined);
  }

  #object(kept: ReadonlyMap<string, Kept>, path: string): void {
    do {
      // Past the brace or the comma.
      this.#at++;
      this.#space();
      if (this.#text[this.#at] === '}') break;
      const name = this.#name();
      this.#space();
      // Past the colon.
      this.#at++;
      this.value(kept.get(name), path === '' ? name : `${path}.${name}`);
      this.#space();
    } while (this.#text[this.#at] === ',');
    this.#at++;
  }

  #name(): string {
    const start = this.#at;
    this.#string();
    const raw = this.#text.slice(start, this.#at);
    return raw.includes('\\') ? String(JSON.parse(raw)) : raw.slice(1, -1);
  }

  /** Passes one value; where it is kept under `path`, its numbers are looked at until one is inexact. */
  #pass(path: string | undefined): void {
    let depth = 0;
    let looks = path !== undefined && !this.#inexact.has(path);
    do {
      switch (this.#text[this.#at]) {
        case '"':
          this.#string();
          break;
        case '{':
        case '[':
          depth++;
          this.#at++;
          break;
        case '}':
        case ']':
          depth--;
          this.#at++;
          break;
        case ',':
        case ':':
          this.#at++;
          break;
        default: {
          const start = this.#at;
          this.#word();
          if (looks && path !== undefined && isInexact(this.#text, start, this.#at)) {
            this.#inexact.add(path);
            looks = false;
          }
        }
      }
      if (depth > 0) this.#space();
    } while (depth > 0);
  }

  #string(): void {
    let at = this.#at + 1;
    for (let code = this.#text.charCodeAt(at); code !== quote; code = this.#text.charCodeAt(at)) {
      at += code === backslash ? 2 : 1;
    }
    this.#at = at + 1;
  }

  /** A number, true, false or null: all that stands between what JSON separates values with. */
  #word(): void {
    let at = this.#at;
    while (at < this.#text.length && !',:]}[{" \t\n\r'.includes(this.#text.charAt(at))) at++;
    this.#at = at;
  }

  #space(): void {
    while (isSpace(this.#text.charCodeAt(this.#at))) this.#at++;
  }
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

const parts = /^-?([0-9]+)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]+))?$/;
const nothing = /^-?[0.]+(?:[eE].*)?$/;

/**
 * Whether a number says another one than the double that is made of it. An integer must be kept to its last digit,
 * however it is written; a fraction is the double nearest to it, as everywhere, but not zero in place of something.
 * What is out of range is none at all.
 */
function isInexact(text: string, start: number, end: number): boolean {
  // Fewer digits are always kept, and 5e-324 is not nothing yet.
  if (end - start < 6) return false;
  const source = text.slice(start, end);
  const value = Number(source);
  if (!Number.isFinite(value)) return false;
  if (value === 0) return !nothing.test(source);
  if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) return false;
  const digits = digitsOf(source);
  return digits !== undefined && digits !== digitsOf(String(value));
}

/** The digits of an integer: 1e23 is 10^23, though the double is a little less. Undefined for a fraction. */
function digitsOf(source: string): string | undefined {
  const [, whole = '', fraction = '', exponent = '0'] = parts.exec(source) ?? [];
  const digits = (whole + fraction).replace(/^0+/, '');
  // Not by an expression: those are slow with many zeros before another digit.
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  const significant = digits.slice(0, end);
  // How many of the digits stand before the point; at most 309, as the number is in range.
  const before = digits.length - fraction.length + Number(exponent);
  return significant.length > before ? undefined : significant.padEnd(before, '0');
}
