// A file through an encrypting or decrypting stream to where it is kept, with word of how far it is.
import type { Destination } from './saving.ts';

export interface TransferOptions {
  readonly file: Blob;
  readonly through: ReadableWritablePair<Uint8Array, Uint8Array>;
  readonly destination: Destination;
  readonly signal: AbortSignal;
  /** Told the bytes of the file that have been read, not more often than is seen. */
  readonly onProgress: (read: number) => void;
}

/** Resolves with what to tell of where the file went. Rejects with what went wrong, and then nothing is left. */
export async function transfer({ file, through, destination, signal, onProgress }: TransferOptions): Promise<string> {
  await file.stream().pipeThrough(counting(onProgress)).pipeThrough(through).pipeTo(destination.writable, { signal });
  return destination.done();
}

const tellEvery = 100;

function counting(onProgress: (read: number) => void): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array> {
  let read = 0;
  let told = 0;
  return new TransformStream({
    transform(piece, controller) {
      read += piece.length;
      const now = Date.now();
      if (now - told >= tellEvery) {
        told = now;
        onProgress(read);
      }
      controller.enqueue(piece);
    },
    flush() {
      onProgress(read);
    },
  });
}

/** What an encrypted file is called. */
export function encryptedName(name: string): string {
  return `${name}.kms`;
}

/** What the content of an encrypted file is called. */
export function decryptedName(name: string): string {
  const without = name.replace(/\.kms$/i, '');
  return without !== name && without !== '' ? without : `${name}.decrypted`;
}
