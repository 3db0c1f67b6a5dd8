// DER (X.690) as far as keys and certificates need it: a strict reader and a writer of the types in PKCS #8, PKCS #1,
// SEC 1, SubjectPublicKeyInfo and X.509. Only the shortest encoding of a length or number is read, so that a key has
// one form.
import { KmsError } from '../errors.ts';
import { concatBytes } from './bytes.ts';

export const tags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  bmpString: 0x1e,
  sequence: 0x30,
  set: 0x31,
  /** [0] and [1] around another value, and [0] in place of an OCTET STRING's own tag. */
  explicit0: 0xa0,
  explicit1: 0xa1,
  explicit3: 0xa3,
  implicit0: 0x80,
  implicit1: 0x81,
  implicit2: 0x82,
} as const;

type Tag = (typeof tags)[keyof typeof tags];

/** A value of whatever type. */
interface DerValue {
  readonly tag: number;
  readonly contents: Uint8Array;
  /** Tag and length too. */
  readonly whole: Uint8Array;
}

export function malformed(problem: string): KmsError {
  return new KmsError('invalid', `malformed DER: ${problem}`);
}

/** Values in a row, such as the contents of a SEQUENCE. All methods throw `invalid` for anything but DER. */
export class DerReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Whether the next value has this tag. */
  isNext(tag: Tag): boolean {
    return this.#bytes[this.#at] === tag;
  }

  /** Contents of the next value: a view of the bytes given. */
  read(tag: Tag): Uint8Array {
    if (!this.isNext(tag)) {
      throw malformed(this.#at < this.#bytes.length ? 'a value of another type than expected' : 'a value is missing');
    }
    return this.any().contents;
  }

  /** The next value, a view of the bytes given. */
  any(): DerValue {
    const begin = this.#at;
    const tag = this.#bytes[begin];
    if (tag === undefined) throw malformed('a value is missing');
    if ((tag & 0x1f) === 0x1f) throw malformed('an unsupported tag');
    const length = this.#length(begin + 1);
    const start = begin + 1 + length.size;
    if (length.value > this.#bytes.length - start) throw malformed('cut off');
    this.#at = start + length.value;
    return {
      tag,
      contents: this.#bytes.subarray(start, this.#at),
      whole: this.#bytes.subarray(begin, this.#at),
    };
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** The next value if it has this tag. */
  readIf(tag: Tag): Uint8Array | undefined {
    return this.isNext(tag) ? this.read(tag) : undefined;
  }

  sequence(): DerReader {
    return new DerReader(this.read(tags.sequence));
  }

  /** Big-endian bytes of an INTEGER that is not negative, without leading zeros; empty for zero. */
  unsigned(): Uint8Array {
    const bytes = this.read(tags.integer);
    const [first, second = 0x80] = bytes;
    if (first === undefined || (first === 0 && bytes.length > 1 && second < 0x80)) throw malformed('a padded number');
    if (first >= 0x80) throw malformed('a negative number');
    return first === 0 ? bytes.subarray(1) : bytes;
  }

  /** Contents of a BIT STRING that is whole bytes. */
  bits(): Uint8Array {
    return wholeBytes(this.read(tags.bitString));
  }

  /** Throws `invalid` if there is another value. */
  end(): void {
    if (!this.isAtEnd) throw malformed('unexpected bytes at the end');
  }

  #length(at: number): { readonly value: number; readonly size: number } {
    const first = this.#bytes[at];
    if (first === undefined) throw malformed('cut off');
    if (first < 0x80) return { value: first, size: 1 };
    const size = first & 0x7f;
    if (size < 1 || size > 4) throw malformed('an unsupported length');
    let value = 0;
    for (let i = 1; i <= size; i++) {
      const byte = this.#bytes[at + i];
      if (byte === undefined) throw malformed('cut off');
      value = value * 256 + byte;
    }
    const isShortest = value >= 0x80 && value >= 256 ** (size - 1);
    if (!isShortest) throw malformed('a length that is not the shortest');
    return { value, size: 1 + size };
  }
}

/** Contents of a BIT STRING's bytes, whose first counts the unused bits at the end. Throws `invalid` unless 0. */
export function wholeBytes(bytes: Uint8Array): Uint8Array {
  if (bytes[0] !== 0) throw malformed('a bit string of no whole number of bytes');
  return bytes.subarray(1);
}

/** The only value in `bytes`, which is a SEQUENCE. */
export function onlySequence(bytes: Uint8Array): DerReader {
  const outer = new DerReader(bytes);
  const inside = outer.sequence();
  outer.end();
  return inside;
}

/** A value with this tag around the parts. */
export function der(tag: Tag, ...parts: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const long: number[] = [];
  if (length >= 0x80) for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) long.unshift(rest % 256);
  const head = long.length === 0 ? [tag, length] : [tag, 0x80 | long.length, ...long];
  return concatBytes(Uint8Array.from(head), ...parts);
}

/** An INTEGER from big-endian bytes, leading zeros allowed. */
export function derUnsigned(bytes: Uint8Array): Uint8Array {
  let at = 0;
  while (at < bytes.length - 1 && bytes[at] === 0) at++;
  const number = bytes.length === 0 ? Uint8Array.of(0) : bytes.subarray(at);
  return (number[0] ?? 0) < 0x80 ? der(tags.integer, number) : der(tags.integer, Uint8Array.of(0), number);
}

/** A BIT STRING of whole bytes. */
export function derBits(bytes: Uint8Array): Uint8Array {
  return der(tags.bitString, Uint8Array.of(0), bytes);
}
