// KeyRings and their configuration.
import { z } from 'zod';
import { key } from './key.ts';
import { algorithm, freeForm, id, requiredText, text, timestamp } from './values.ts';

export const keyring = z.object({
  id,
  name: z.string(),
  displayName: z.string(),
  activeKey: id,
  activeAlgorithm: algorithm,
  createdAt: timestamp,
  updatedAt: timestamp,
  props: freeForm,
  publicKey: z.string().meta({ description: 'X25519, base64 SPKI DER' }),
});
export type KeyRing = z.output<typeof keyring>;

export const createKeyringBody = z.object({
  name: requiredText,
  algo: algorithm.exactOptional(),
  publicKey: text.exactOptional().meta({
    description:
      'X25519 public key: base64 SPKI DER, PEM, or base64 of the 32 bytes. Absent: the appliance makes a pair',
  }),
  props: freeForm.exactOptional(),
  keyProps: freeForm.exactOptional(),
});

export const createKeyringAnswer = z.object({
  ring: keyring,
  key,
  privateKey: z.string().exactOptional().meta({
    description: 'base64 PKCS#8 DER; only when no publicKey was given, once, never stored',
  }),
});

export const ringAnswer = z.object({ ring: keyring });
export const deletedRing = z.object({ name: z.string(), id });

export const rotateBody = z.object({ ringname: requiredText, algo: algorithm.exactOptional() });
export const rotateAnswer = z.object({ key });

const maxEncryptCount = z.int().min(1);

export const keyringConfig = z.object({
  props: freeForm,
  key: z.object({ props: freeForm }),
  algos: z.object({ aes256: z.object({ maxEncryptCount }) }),
});
export type KeyRingConfig = z.output<typeof keyringConfig>;

/** A configuration in a request: what it names is replaced, the rest is kept. */
export const configChange = z.object({
  props: freeForm.exactOptional(),
  key: z.object({ props: freeForm.exactOptional() }).exactOptional(),
  algos: z
    .object({ aes256: z.object({ maxEncryptCount: maxEncryptCount.exactOptional() }).exactOptional() })
    .exactOptional(),
});

export const putConfigBody = z.object({ ringname: requiredText, config: configChange });
export const configAnswer = z.object({ config: keyringConfig });
