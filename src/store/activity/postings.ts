// Postings list for each term the positions of the records that have it (0 is a segment's first record), ascending.
// They are stored as gaps of 7 bits a byte or as a bitmap, whichever is shorter, on pages sorted by term, so that a
// search opens one page per term.

import { concatBytes } from '../../crypto/bytes.ts';

const kindGaps = 0;
const kindBitmap = 1;
/** A page is closed when it reaches this many bytes. */
const pageBytes = 8192;

interface PostingsPage {
  readonly firstTerm: number;
  readonly bytes: Uint8Array;
}

/** Encodes positions; `count` is the number of records. */
export function encodePositions(positions: readonly number[], count: number): Uint8Array {
  const gaps: number[] = [kindGaps];
  let previous = -1;
  for (const position of positions) {
    let gap = position - previous - 1;
    previous = position;
    for (; gap > 127; gap >>>= 7) gaps.push((gap & 127) | 128);
    gaps.push(gap);
  }
  const bitmapBytes = 1 + Math.ceil(count / 8);
  if (gaps.length <= bitmapBytes) return Uint8Array.from(gaps);
  const bitmap = new Uint8Array(bitmapBytes);
  bitmap[0] = kindBitmap;
  for (const position of positions) {
    const at = 1 + (position >>> 3);
    bitmap[at] = (bitmap[at] ?? 0) | (1 << (position & 7));
  }
  return bitmap;
}

export function decodePositions(bytes: Uint8Array): number[] {
  const positions: number[] = [];
  if (bytes[0] === kindBitmap) {
    for (let at = 1; at < bytes.length; at++) {
      for (let rest = bytes[at] ?? 0; rest !== 0; rest &= rest - 1) {
        positions.push((at - 1) * 8 + 31 - Math.clz32(rest & -rest));
      }
    }
    return positions;
  }
  let position = -1;
  let gap = 0;
  let shift = 0;
  for (let at = 1; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    gap |= (byte & 127) << shift;
    shift += 7;
    if (byte > 127) continue;
    position += gap + 1;
    positions.push(position);
    gap = 0;
    shift = 0;
  }
  return positions;
}

/**
 * Packs the postings of all terms on pages: u32 number of terms, then each term and the end of its bytes (u32 both),
 * then the bytes.
 */
export function makePages(postings: ReadonlyMap<number, readonly number[]>, count: number): PostingsPage[] {
  const pages: PostingsPage[] = [];
  let entries: { term: number; bytes: Uint8Array }[] = [];
  let size = 4;
  const close = (): void => {
    const [first] = entries;
    if (first) pages.push({ firstTerm: first.term, bytes: makePage(entries, size) });
    entries = [];
    size = 4;
  };
  for (const [term, positions] of [...postings].sort(([a], [b]) => a - b)) {
    const bytes = encodePositions(positions, count);
    entries.push({ term, bytes });
    size += 8 + bytes.length;
    if (size >= pageBytes) close();
  }
  close();
  return pages;
}

function makePage(entries: readonly { term: number; bytes: Uint8Array }[], size: number): Uint8Array {
  const page = new Uint8Array(size);
  const view = new DataView(page.buffer);
  view.setUint32(0, entries.length);
  const start = 4 + entries.length * 8;
  let end = start;
  for (const [index, { term, bytes }] of entries.entries()) {
    page.set(bytes, end);
    end += bytes.length;
    view.setUint32(4 + index * 8, term);
    view.setUint32(8 + index * 8, end);
  }
  return page;
}

const columnOf = (page: DataView, count: number, at: (index: number) => number): Uint8Array => {
  const planes = new Uint8Array(count * 4);
  let before = 0;
  for (let index = 0; index < count; index++) {
    const value = page.getUint32(at(index));
    const more = value - before;
    before = value;
    for (let plane = 0; plane < 4; plane++) planes[plane * count + index] = more >>> (24 - plane * 8);
  }
  return planes;
};

/**
 * Encodes a page for storage: u32 number of terms, then the difference of each term from the previous one, then of each
 * end likewise, the highest bytes of all first; then the positions. It compresses to half the size of the plain page.
 */
export function packPage(page: Uint8Array): Uint8Array {
  const view = new DataView(page.buffer, page.byteOffset, page.byteLength);
  const count = view.getUint32(0);
  const terms = columnOf(view, count, (index) => 4 + index * 8);
  const ends = columnOf(view, count, (index) => 8 + index * 8);
  return concatBytes(page.subarray(0, 4), terms, ends, page.subarray(4 + count * 8));
}

/** Decodes a page from `packPage`. */
export function unpackPage(packed: Uint8Array): Uint8Array {
  const page = new Uint8Array(packed);
  const view = new DataView(page.buffer);
  const count = view.getUint32(0);
  const value = (column: number, index: number): number => {
    const at = 4 + column * 4 * count + index;
    const byte = (plane: number): number => packed[at + plane * count] ?? 0;
    return ((byte(0) << 24) | (byte(1) << 16) | (byte(2) << 8) | byte(3)) >>> 0;
  };
  let term = 0;
  let end = 0;
  for (let index = 0; index < count; index++) {
    term += value(0, index);
    end += value(1, index);
    view.setUint32(4 + index * 8, term);
    view.setUint32(8 + index * 8, end);
  }
  return page;
}

/** The positions of a term on its page. */
export function findPositions(page: Uint8Array, term: number): number[] {
  const view = new DataView(page.buffer, page.byteOffset, page.byteLength);
  const count = view.getUint32(0);
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (view.getUint32(4 + middle * 8) < term) low = middle + 1;
    else high = middle;
  }
  if (low === count || view.getUint32(4 + low * 8) !== term) return [];
  const start = low === 0 ? 4 + count * 8 : view.getUint32(low * 8);
  return decodePositions(page.subarray(start, view.getUint32(8 + low * 8)));
}

/** The values in both of two ascending lists. */
export function intersect(a: readonly number[], b: readonly number[]): number[] {
  const both: number[] = [];
  let at = 0;
  for (const value of a) {
    while (at < b.length && (b[at] ?? 0) < value) at++;
    if (b[at] === value) both.push(value);
  }
  return both;
}

/** The values in any of several ascending lists, ascending. */
export function union(lists: readonly (readonly number[])[]): readonly number[] {
  const [first, ...rest] = lists;
  if (rest.length === 0) return first ?? [];
  return [...new Set(lists.flat())].sort((a, b) => a - b);
}
