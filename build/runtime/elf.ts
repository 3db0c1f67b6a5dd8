// Reads the parts of an ELF file (64 bit, little-endian) that the build patches: its segments, its dynamic section, and
// the file offset of an address.

export interface Segment {
  readonly type: number;
  readonly flags: number;
  readonly offset: number;
  readonly address: number;
  readonly fileSize: number;
  /** File offset of this entry in the program header table. */
  readonly entry: number;
}

export const segmentTypes = { load: 1, dynamic: 2 } as const;
export const executableFlag = 1;
export const tags = {
  needed: 1,
  strtab: 5,
  symtab: 6,
  jmprel: 23,
  pltrelsz: 2,
  verneed: 0x6ffffffe,
  verneednum: 0x6fffffff,
} as const;

export interface Elf {
  readonly bytes: Buffer;
  readonly segments: readonly Segment[];
  /** Entries of the dynamic section, with their file offsets. */
  readonly dynamic: readonly { readonly tag: number; readonly value: number; readonly at: number }[];
  offsetOf(address: number): number;
  /** The value of a tag that occurs once. */
  value(tag: number): number;
  /** A string of the dynamic string table. */
  nameAt(index: number): string;
}

/** Returns undefined unless the file is a program for x86-64 at fixed addresses. */
export function readElf(bytes: Buffer): Elf | undefined {
  const fixed = 2;
  const amd64 = 62;
  if (bytes.readUInt32BE(0) !== 0x7f454c46 || bytes[4] !== 2 || bytes[5] !== 1) return undefined;
  if (bytes.readUInt16LE(16) !== fixed || bytes.readUInt16LE(18) !== amd64) return undefined;
  const read64 = (at: number): number => Number(bytes.readBigUInt64LE(at));
  const segments = Array.from({ length: bytes.readUInt16LE(56) }, (_, i): Segment => {
    const entry = read64(32) + i * bytes.readUInt16LE(54);
    return {
      type: bytes.readUInt32LE(entry),
      flags: bytes.readUInt32LE(entry + 4),
      offset: read64(entry + 8),
      address: read64(entry + 16),
      fileSize: read64(entry + 32),
      entry,
    };
  });
  const place = segments.find(({ type }) => type === segmentTypes.dynamic);
  if (!place) return undefined;
  const dynamic = Array.from({ length: place.fileSize / 16 }, (_, i) => {
    const at = place.offset + i * 16;
    return { tag: read64(at), value: read64(at + 8), at };
  });
  const offsetOf = (address: number): number => {
    const home = segments.find(
      (each) => each.type === segmentTypes.load && address >= each.address && address < each.address + each.fileSize,
    );
    if (!home) throw new Error(`address ${address.toString(16)} is not in the file`);
    return address - home.address + home.offset;
  };
  const value = (tag: number): number => {
    const found = dynamic.find((each) => each.tag === tag);
    if (!found) throw new Error(`the dynamic section has no entry ${tag.toString(16)}`);
    return found.value;
  };
  const nameAt = (index: number): string => {
    const start = offsetOf(value(tags.strtab)) + index;
    return bytes.toString('latin1', start, bytes.indexOf(0, start));
  };
  return { bytes, segments, dynamic, offsetOf, value, nameAt };
}
