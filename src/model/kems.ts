// KEMs by which a ring's keys are wrapped to its public key, by their HPKE and WebCrypto names in lower case.
// `mlkem768-x25519` is X-Wing: safe while either half is, so that a quantum computer alone does not open it.
export const kemNames = ['x25519', 'mlkem768-x25519'] as const;

export type Kem = (typeof kemNames)[number];

/** Times that one key can be rewrapped, since each wrapping is kept; afterwards only an earlier one can be restored. */
export const mostRewraps = 32;

/** Keys that one request may rewrap. */
export const mostRewrapped = 100;
