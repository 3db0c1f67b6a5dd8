// KeyRings and their configuration.
import { z } from 'zod';
import { sample } from './example-values.ts';
import { key } from './key.ts';
import { algorithm, freeForm, id, requiredText, text, timestamp } from './values.ts';

const ringProps = freeForm.meta({ description: 'kept with the KeyRing', examples: [{ team: 'finance' }] });
const keyProps = freeForm.meta({ description: 'the `props` of each new key of it', examples: [{}] });
const ringname = requiredText.meta({ description: 'name of the KeyRing, in any case', examples: ['payroll'] });

export const keyring = z
  .object({
    id: id.meta({ description: 'id of the KeyRing', examples: [sample.ringId] }),
    name: z.string().meta({ description: 'the name in lower case', examples: ['payroll'] }),
    displayName: z.string().meta({ description: 'the name as it was given', examples: ['Payroll'] }),
    activeKey: id.meta({ description: 'id of the newest key, which encrypts', examples: [sample.keyId] }),
    activeAlgorithm: algorithm,
    createdAt: timestamp,
    updatedAt: timestamp,
    props: ringProps,
    publicKey: z.string().meta({
      description: 'X25519, base64 SPKI DER; every key of the ring is wrapped to it',
      examples: [sample.publicKey],
    }),
  })
  .meta({ id: 'KeyRing', description: 'a named set of keys, of which the newest encrypts and all decrypt' });
export type KeyRing = z.output<typeof keyring>;

export const createKeyringBody = z.object({
  name: requiredText.meta({
    description:
      'a letter or digit, then at most 127 letters, digits, dots, underscores or hyphens; unique but for case',
    examples: ['Payroll'],
  }),
  algo: algorithm.exactOptional(),
  publicKey: text.exactOptional().meta({
    description:
      'X25519 public key: base64 SPKI DER, PEM, or base64 of the 32 bytes. Absent: the appliance makes a pair',
    examples: [sample.publicKey],
  }),
  props: ringProps.exactOptional(),
  keyProps: keyProps.exactOptional(),
});

export const createKeyringAnswer = z.object({
  ring: keyring,
  key,
  privateKey: z
    .string()
    .exactOptional()
    .meta({
      description: 'X25519, base64 PKCS#8 DER; only when no publicKey was given, once, never stored',
      examples: [sample.privateKey],
    }),
});

export const ringAnswer = z.object({ ring: keyring });
export const deletedRing = z.object({
  name: z.string().meta({ description: 'the name, which is free again', examples: ['payroll'] }),
  id: id.meta({ description: 'the id, under which it can be restored', examples: [sample.ringId] }),
});

export const rotateBody = z.object({ ringname, algo: algorithm.exactOptional() });
export const rotateAnswer = z.object({ key });

const maxEncryptCount = z
  .int()
  .min(1)
  .meta({
    description: 'how many encrypts a key serves; the next one rotates the ring first',
    examples: [1000000],
  });

export const keyringConfig = z
  .object({
    props: ringProps,
    key: z.object({ props: keyProps }).meta({ description: 'what new keys get' }),
    algos: z
      .object({ aes256: z.object({ maxEncryptCount }).meta({ description: 'settings of `aes256`' }) })
      .meta({ description: 'settings by algorithm' }),
  })
  .meta({ id: 'KeyRingConfig', description: 'the configuration of a KeyRing' });
export type KeyRingConfig = z.output<typeof keyringConfig>;

/** A configuration in a request: what it names is replaced, the rest is kept. */
export const configChange = z.object({
  props: ringProps.exactOptional(),
  key: z.object({ props: keyProps.exactOptional() }).exactOptional().meta({ description: 'what new keys get' }),
  algos: z
    .object({
      aes256: z
        .object({ maxEncryptCount: maxEncryptCount.exactOptional() })
        .exactOptional()
        .meta({ description: 'settings of `aes256`' }),
    })
    .exactOptional()
    .meta({ description: 'settings by algorithm' }),
});

export const putConfigBody = z.object({
  ringname,
  config: configChange.meta({ description: 'what to change: what it names is replaced, the rest is kept' }),
});
export const configAnswer = z.object({ config: keyringConfig });
