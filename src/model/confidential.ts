// The fields of bodies whose values only their sender should see, by name, at any depth. Approvers see a code instead.

const confidential: ReadonlySet<string> = new Set(
  [
    ...['plaintext', 'plaintexts', 'ciphertext', 'input', 'message', 'messages', 'context', 'associatedData', 'aad'],
    ...['password', 'currentPassword', 'newPassword', 'code', 'token', 'secret', 'apikey', 'key', 'privateKey'],
    ...['data', 'value', 'values', 'material', 'wrappedKey', 'wrapped', 'share', 'passphrase', 'mac'],
    ...['salt', 'iv', 'nonce', 'clientSecret'],
  ].map((name) => name.toLowerCase()),
);

export function isConfidential(name: string): boolean {
  return confidential.has(name.toLowerCase());
}

/** Parameters of paths and queries that are secrets, or as good as them. */
export function isConfidentialParameter(name: string): boolean {
  return name === 'apikey' || name === 'token';
}
