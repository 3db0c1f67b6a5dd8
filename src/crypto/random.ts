// The system's secure generator, as the function that everything else is handed.

/** The most that one call of getRandomValues fills. */
const perCall = 65536;

/** `length` bytes from the system's secure generator. */
export function systemRandom(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let offset = 0; offset < length; offset += perCall) {
    crypto.getRandomValues(bytes.subarray(offset, offset + perCall));
  }
  return bytes;
}
