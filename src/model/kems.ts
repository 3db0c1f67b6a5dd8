// How the keys of a ring are wrapped to its public key, by the names that HPKE and WebCrypto have for the KEM, in lower
// case. `mlkem768-x25519` is X-Wing: safe while either half is, so that a quantum computer alone does not open it.
export const kemNames = ['x25519', 'mlkem768-x25519'] as const;

export type Kem = (typeof kemNames)[number];

/** How often one key is wrapped anew, since each wrapping is kept; then only an earlier one can be put back. */
export const mostRewraps = 32;

/** Keys that one request may wrap anew. */
export const mostRewrapped = 100;
