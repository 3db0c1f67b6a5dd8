// Everything that can be wrong with an encrypted file, with what is said about it. The vectors of the file format name
// these classes.
import { type ErrorCode, KmsError } from '../errors.ts';

const faults = {
  'not-kms': ['invalid', 'not a kms file: it does not start with "kms-file"', 'check that this is the right file'],
  'unknown-version': [
    'invalid',
    'the kms file has a format version that this program does not know',
    'use a newer version of kms',
  ],
  'cut-prelude': ['corrupt', 'the kms file ends before its encrypted part', 'get a complete copy of the file'],
  'bad-header': ['corrupt', 'the kms file has a malformed header', 'get an unaltered copy of the file'],
  'wrong-key': [
    'corrupt',
    'the kms file does not open with this key: it is another key, or the beginning of the file was altered',
    'get an unaltered copy of the file',
  ],
  altered: [
    'corrupt',
    'the kms file was altered or cut: a part of it does not verify',
    'throw away what was decrypted of it and get an unaltered copy of the file',
  ],
  cut: [
    'corrupt',
    'the kms file was cut: its end is missing',
    'throw away what was decrypted of it and get a complete copy of the file',
  ],
} as const satisfies Record<string, readonly [ErrorCode, string, string]>;

export type FileFault = keyof typeof faults;

/** The error for a fault. */
export function fileFault(fault: FileFault, cause?: unknown): KmsError {
  const [code, message, hint] = faults[fault];
  return new KmsError(code, message, { hint, cause });
}

/** Which fault an error stands for, if any. */
export function faultOf(error: unknown): FileFault | undefined {
  if (!(error instanceof KmsError)) return undefined;
  return names.find((fault) => faults[fault][1] === error.message);
}

const names = Object.keys(faults) as FileFault[]; // the keys of an object that nothing adds to
