// JSON parsing that checks numbers as written, so that none changes silently: a number that a double cannot hold is
// reported, and so refused. Only fields that are stored are checked; ignored fields cost nothing.

/** Which numbers of a JSON text are checked: all of them, or those in some fields of an object. */
export type Kept = 'all' | ReadonlyMap<string, Kept>;

export interface ExactJson {
  readonly value: unknown;
  /** Paths, joined by dots, of fields with a number that a double cannot hold: each once, empty for the whole value. */
  readonly inexact: readonly string[];
}

export const inexactNumber = 'holds a number that cannot be kept exactly: send it as a string';

/**
 * Sixteen digits, perhaps with a point among them, or an exponent that may underflow to zero: without either, every
 * number is exact.
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

/** Why a number from parsed JSON cannot be stored; undefined if it can. */
export function numberProblem(value: number): string | undefined {
  return Number.isFinite(value) ? undefined : 'holds a number out of range';
}

/** Why a number anywhere in parsed JSON cannot be stored; undefined if all can. */
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

/** One pass over a text known to be valid JSON. It recurses only as deep as `kept`, however deep the text nests. */
class Walk {
  readonly #text: string;
  readonly #inexact: Set<string>;
  #at = 0;

  constructor(text: string, inexact: Set<string>) {
    this.#text = text;
    this.#inexact = inexact;
  }

  /** Skips one value, checking numbers in kept fields. */
  value(kept: Kept | undefined, path: string): void {
    this.#space();
    if (kept !== undefined && kept !== 'all' && this.#text.charCodeAt(this.#at) === openBrace) this.#object(kept, path);
    else this.#pass(kept === 'all' ? path : undefined);
  }

  #object(kept: ReadonlyMap<string, Kept>, path: string): void {
    do {
      // Skip the brace or the comma.
      this.#at++;
      this.#space();
      if (this.#text[this.#at] === '}') break;
      const name = this.#name();
      this.#space();
      // Skip the colon.
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

  /** Skips one value; if it is kept under `path`, checks its numbers until one is inexact. */
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

  /** A number, true, false or null: everything up to the next JSON delimiter. */
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
 * Whether the written number differs from its double. An integer must match to its last digit, however it is written. A
 * fraction is the nearest double, as everywhere, but must not underflow to zero. Numbers out of range are not reported
 * here.
 */
function isInexact(text: string, start: number, end: number): boolean {
  // Fewer characters are always exact; 5e-324, say, does not underflow yet.
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
  // Not a regular expression: it would be slow with many zeros before another digit.
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  const significant = digits.slice(0, end);
  // Digits before the point; at most 309, as the number is in range.
  const before = digits.length - fraction.length + Number(exponent);
  return significant.length > before ? undefined : significant.padEnd(before, '0');
}
