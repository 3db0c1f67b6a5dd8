// CRC-32 (ISO 3309, the one of zip and Ethernet): finds typing mistakes, proves nothing.

const table = new Uint32Array(256);
for (let n = 0; n < 256; n++) {
  let c = n;
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
  table[n] = c;
}

/** The checksum of the first `length` bytes, of all by default, as an unsigned 32-bit number. */
export function crc32(bytes: Uint8Array, length = bytes.length): number {
  let c = 0xffffffff;
  for (let i = 0; i < length; i++) c = (table[(c ^ (bytes[i] ?? 0)) & 0xff] ?? 0) ^ (c >>> 8);
  return ~c >>> 0;
}
