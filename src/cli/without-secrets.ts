// Errors repeat what was typed. Where that was a secret in the place of the name of its file, it is left out: stderr ends up in logs.

const secrets = [
  // API keys and tokens, see crypto/api-key.ts and crypto/token.ts.
  /(kms(?:at|in|rs)?_)[0-9A-Za-z]{43,}/g,
  // Private keys: PEM, and PKCS#8 in base64 with what each X25519 key begins with.
  /(-----BEGIN [A-Z ]*PRIVATE KEY-----)(?:(?!-----END).)*/gs,
  /(MC4CAQAwBQYDK2VuBCIEI)[0-9A-Za-z+/=]+/g,
];

/** The text with every secret of a known form cut to its beginning. */
export function withoutSecrets(text: string): string {
  return secrets.reduce((rest, secret) => rest.replace(secret, '$1…'), text);
}
