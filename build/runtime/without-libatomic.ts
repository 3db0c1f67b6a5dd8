// Frees Node for Linux on x86-64 of libatomic.so.1, which minimal systems lack. Node needs it for one function that its
// compiler did not inline: an atomic compare-and-exchange, always of 8 bytes. This puts that function into the padding
// after the program's code, points its GOT slot there, and removes the library from the lists of what the program
// needs.
import { type Elf, executableFlag, readElf, segmentTypes, tags } from './elf.ts';

const library = 'libatomic.so.1';
const wanted = '__atomic_compare_exchange';

/**
 * `bool __atomic_compare_exchange(size_t size, void *object, void *expected, void *desired, int, int)` for sizes 8, 4,
 * 2 and 1, always sequentially consistent; any other size stops the program (`ud2`). Output of gcc -Os for `if (size ==
 * 8) return __atomic_compare_exchange_n((long *)object, (long *)expected, *(long *)desired, 0, 5, 5);` and so on.
 */
const code = Buffer.from(
  '4883ff087515488b02488b09f0480fb10e0f94c1744f488902eb4a4883ff0475118b028b09f00fb10e0f94c174378902eb334883ff02751566' +
    '8b02668b0966f00fb10e0f94c1741d668902eb1848ffcf75118a028a09f00fb00e0f94c174068802eb020f0b89c8c3',
  'hex',
);

/** Changes `bytes` in place. Returns whether the program now needs no libatomic, also if it never did. */
export function dropLibatomic(bytes: Buffer): boolean {
  const elf = readElf(bytes);
  if (!elf) return false;
  if (!elf.dynamic.some((each) => isLibatomic(elf, each))) return true;
  const slots = slotsOf(elf).filter(({ name }) => name.startsWith('__atomic_'));
  const [slot] = slots;
  if (slots.length !== 1 || slot?.name !== wanted) return false;
  const address = addCode(elf);
  if (address === undefined) return false;
  bytes.writeBigUInt64LE(BigInt(address), elf.offsetOf(slot.target));
  // R_X86_64_NONE: the loader leaves the slot alone.
  bytes.writeBigUInt64LE(0n, slot.at + 8);
  forgetVersions(elf);
  forgetLibrary(elf);
  return true;
}

/** GOT slots that the loader fills with the addresses of functions. */
function slotsOf(elf: Elf): { name: string; target: number; at: number }[] {
  const start = elf.offsetOf(elf.value(tags.jmprel));
  const symbols = elf.offsetOf(elf.value(tags.symtab));
  return Array.from({ length: elf.value(tags.pltrelsz) / 24 }, (_, i) => {
    const at = start + i * 24;
    const symbol = elf.bytes.readUInt32LE(at + 12);
    const name = elf.nameAt(elf.bytes.readUInt32LE(symbols + symbol * 24));
    return { name, target: Number(elf.bytes.readBigUInt64LE(at)), at };
  });
}

/** Puts the code after the last byte of the code segment, within its last page, and returns its address. */
function addCode({ bytes, segments }: Elf): number | undefined {
  const text = segments.find(({ type, flags }) => type === segmentTypes.load && (flags & executableFlag) !== 0);
  if (!text) return undefined;
  const size = (text.fileSize + 15) & ~15;
  const start = text.offset + size;
  const end = start + code.length;
  const room = bytes.subarray(text.offset + text.fileSize, end);
  const samePage = (end - 1) >>> 12 === (text.offset + text.fileSize - 1) >>> 12;
  if (!samePage || room.some((byte) => byte !== 0)) return undefined;
  code.copy(bytes, start);
  // Size in the file and size in memory.
  bytes.writeBigUInt64LE(BigInt(size + code.length), text.entry + 32);
  bytes.writeBigUInt64LE(BigInt(size + code.length), text.entry + 40);
  return text.address + size;
}

/** Removes the library from the version requirements that the loader checks. */
function forgetVersions(elf: Elf): void {
  const { bytes, dynamic } = elf;
  const first = dynamic.find(({ tag }) => tag === tags.verneed);
  const count = dynamic.find(({ tag }) => tag === tags.verneednum);
  if (!first || !count) return;
  let before: number | undefined;
  for (let at = elf.offsetOf(first.value), i = 0; i < count.value; i++) {
    const next = bytes.readUInt32LE(at + 12);
    if (elf.nameAt(bytes.readUInt32LE(at + 4)) === library) {
      if (before === undefined) bytes.writeBigUInt64LE(BigInt(first.value + next), first.at + 8);
      else bytes.writeUInt32LE(next === 0 ? 0 : bytes.readUInt32LE(before + 12) + next, before + 12);
      bytes.writeBigUInt64LE(BigInt(count.value - 1), count.at + 8);
      return;
    }
    before = at;
    at += next;
  }
}

function forgetLibrary(elf: Elf): void {
  const entries = elf.dynamic.filter((each) => !isLibatomic(elf, each));
  const kept = entries.map(({ at }) => Buffer.from(elf.bytes.subarray(at, at + 16)));
  for (const [i, { at }] of elf.dynamic.entries()) (kept[i] ?? Buffer.alloc(16)).copy(elf.bytes, at);
}

function isLibatomic(elf: Elf, { tag, value }: { readonly tag: number; readonly value: number }): boolean {
  return tag === tags.needed && elf.nameAt(value) === library;
}
