// Limits of the proofs of one API key.

/** Its secret included. */
export const mostProofs = 20;

/** Two, so that they can be rotated. */
export const mostAccessKeys = 2;
