// Removes languages from Node: a quarter of the executable is Unicode data (ICU) on 800 languages and legacy encodings,
// while the appliance speaks English and UTF-8. English and language-independent data stay in the library's table; the
// rest is cut out of the file. Every address stays the same, and the removed range is not mapped. A request for another
// language falls back to the root locale.
import { type Elf, readElf, type Segment, segmentTypes } from './elf.ts';

const page = 4096;
/** Bytes of an entry in the program header table. */
const entryLength = 56;

interface Item {
  readonly name: string;
  readonly bytes: Buffer;
}

/**
 * Returns the program without the other languages, or undefined if its layout is not as expected. `program` is laid out
 * like the single executable.
 */
export function dropLanguages(program: Buffer): Buffer | undefined {
  const elf = readElf(program);
  const data = elf && findData(program);
  if (!elf || !data) return undefined;
  const home = elf.segments.find(
    ({ type, offset, fileSize }) => type === segmentTypes.load && offset <= data.start && data.end <= offset + fileSize,
  );
  if (!home || !hasRoom(elf)) return undefined;
  const table = tableOf(data.items.filter(({ name }) => isKept(name)));
  const from = Math.ceil((data.start + data.headerLength + table.length) / page) * page;
  const to = Math.floor(data.end / page) * page;
  if (to <= from || (home.address - home.offset) % page !== 0) return undefined;
  table.copy(program, data.start + data.headerLength);
  program.fill(0, data.start + data.headerLength + table.length, from);
  return cutOut(elf, home, from, to);
}

/**
 * Drops languages and their regional variants (all but root and English), encodings, and dictionaries for word breaks.
 */
function isKept(path: string): boolean {
  const [name = '', folder = ''] = path.split('/').reverse();
  if (folder === 'translit' || /\.(cnv|dict)$/.test(name)) return false;
  // The index of all locales, without which not even English loads.
  if (name === 'res_index.res') return true;
  return !/^[a-z]{2,3}(_.*)?\.res$/.test(name) || /^en[_.]/.test(name);
}

/**
 * Finds the library's data: a header with its own length, then the number of items, then for each item, in the order of
 * the names, the offsets of its name and its content from the end of the header.
 */
function findData(program: Buffer) {
  const format = Buffer.from('CmnD');
  for (let at = program.indexOf(format); at >= 0; at = program.indexOf(format, at + 1)) {
    const start = at - 12;
    if (program.readUInt16BE(start + 2) !== 0xda27) continue;
    const headerLength = program.readUInt16LE(start);
    const base = start + headerLength;
    const count = program.readUInt32LE(base);
    const placeOf = (item: number): number => base + program.readUInt32LE(base + 8 + item * 8);
    const nameOf = (item: number): string => {
      const from = base + program.readUInt32LE(base + 4 + item * 8);
      return program.toString('latin1', from, program.indexOf(0, from));
    };
    // The last item's length is not stored; it is a language's and is dropped.
    const end = placeOf(count - 1);
    const items = Array.from({ length: count - 1 }, (_, item): Item => {
      return { name: nameOf(item), bytes: Buffer.from(program.subarray(placeOf(item), placeOf(item + 1))) };
    });
    return isKept(nameOf(count - 1)) ? undefined : { start, headerLength, items, end };
  }
  return undefined;
}

/** The table and the items' contents, as they follow the header. */
function tableOf(items: readonly Item[]): Buffer {
  const names = items.map(({ name }) => Buffer.from(`${name}\0`, 'latin1'));
  const lead = Buffer.alloc(4 + items.length * 8);
  lead.writeUInt32LE(items.length);
  let place = lead.length;
  for (const [i, name] of names.entries()) {
    lead.writeUInt32LE(place, 4 + i * 8);
    place += name.length;
  }
  // Contents are aligned to 16 bytes.
  const gap = Buffer.alloc(-place & 15);
  place += gap.length;
  for (const [i, { bytes }] of items.entries()) {
    lead.writeUInt32LE(place, 8 + i * 8);
    place += bytes.length;
  }
  return Buffer.concat([lead, ...names, gap, ...items.map(({ bytes }) => bytes)]);
}

/** Whether the program header table, in a segment of its own at the file's end, has room for another entry. */
function hasRoom({ bytes, segments }: Elf): boolean {
  const start = Number(bytes.readBigUInt64LE(32));
  const end = start + (bytes.readUInt16LE(56) + 1) * entryLength;
  return segments.some(({ type, offset, fileSize }) => {
    return type === segmentTypes.load && offset === start && end <= offset + fileSize;
  });
}

/** Cuts the bytes from `from` to `to` out of the file and their pages out of the segment `home`. */
function cutOut({ bytes, segments }: Elf, home: Segment, from: number, to: number): Buffer {
  const length = to - from;
  for (const { offset, entry } of segments) if (offset >= to) writeNumber(bytes, entry + 8, offset - length);
  const rest = Buffer.from(bytes.subarray(home.entry, home.entry + entryLength));
  writeNumber(rest, 8, from);
  for (const at of [16, 24]) writeNumber(rest, at, home.address + to - home.offset);
  for (const at of [32, 40]) writeNumber(rest, at, home.offset + home.fileSize - to);
  for (const at of [32, 40]) writeNumber(bytes, home.entry + at, from - home.offset);
  const start = Number(bytes.readBigUInt64LE(32));
  const count = bytes.readUInt16LE(56);
  bytes.copyWithin(home.entry + 2 * entryLength, home.entry + entryLength, start + count * entryLength);
  rest.copy(bytes, home.entry + entryLength);
  writeNumber(bytes, 32, start - length);
  bytes.writeUInt16LE(count + 1, 56);
  // The section header table, which no loader reads, would no longer match.
  writeNumber(bytes, 40, 0);
  for (const at of [60, 62]) bytes.writeUInt16LE(0, at);
  return Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)]);
}

function writeNumber(bytes: Buffer, at: number, value: number): void {
  bytes.writeBigUInt64LE(BigInt(value), at);
}
