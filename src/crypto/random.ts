// The system's secure generator, as the function that everything else is handed.

/** The most that one call of getRandomValues fills. */
const perCall = 65536;

/**
 * `length` bytes from the system's secure generator. Nothing is drawn ahead: a pool would save a microsecond, and a
 * virtual machine restored twice would give out the same nonces twice.
 */
export function systemRandom(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let offset = 0; offset < length; offset += perCall) {
    crypto.getRandomValues(bytes.subarray(offset, offset + perCall));
  }
  return bytes;
}
