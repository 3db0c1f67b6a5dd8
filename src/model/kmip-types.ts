// Types of KMIP's objects that are kept here, by KMIP's number.
export const kmipTypes = {
  1: 'certificate',
  2: 'symmetric-key',
  3: 'public-key',
  4: 'private-key',
  7: 'secret-data',
  8: 'opaque-object',
} as const;

export type KmipType = (typeof kmipTypes)[keyof typeof kmipTypes];
