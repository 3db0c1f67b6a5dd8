// Padded base64 where the platform has no `Uint8Array.fromBase64` yet, such as Node 20 and browsers from before autumn 2025: by way of
// strings of bytes, which is slow, and canonical all the same.

export function base64ByText(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

/** Undefined for any text that `base64ByText` does not make. */
export function bytesByText(base64: string): Uint8Array | undefined {
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return base64ByText(bytes) === base64 ? bytes : undefined;
  } catch {
    return undefined;
  }
}
