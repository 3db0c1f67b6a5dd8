// Saving is where the bytes of a file go that is made in the browser: straight to the disk where the browser lets a
// page do that, else into memory and from there to the downloads. Either way nothing is left of a file that was not
// finished.

interface Destination {
  readonly writable: WritableStream<Uint8Array>;
  /** To be called once everything is written: what to tell of where it went. */
  readonly done: () => string;
}

/** What a browser is trusted to hold in memory for one file. */
export const mostInMemory = 512 * 1024 * 1024;

interface PickerWindow {
  readonly showSaveFilePicker?: (options: { readonly suggestedName: string }) => Promise<FileSystemFileHandle>;
}

/** Whether files of any size can be written. */
export function writesToDisk(): boolean {
  return typeof (window as PickerWindow).showSaveFilePicker === 'function'; // not in every browser, so not in its types
}

/**
 * Asks where to, where the browser can. Has to be called when somebody has just clicked. Rejects with an `AbortError`
 * where they chose nothing.
 */
export async function destinationFor(name: string): Promise<Destination> {
  const { showSaveFilePicker } = window as PickerWindow; // as above
  if (!showSaveFilePicker) return inMemory(name);
  const handle = await showSaveFilePicker.call(window, { suggestedName: name });
  const writable = await handle.createWritable();
  return { writable, done: () => `Saved as ${handle.name}.` };
}

function inMemory(name: string): Destination {
  let pieces: Uint8Array<ArrayBuffer>[] = [];
  const writable = new WritableStream<Uint8Array>({
    write(piece) {
      pieces.push(new Uint8Array(piece));
    },
    abort() {
      pieces = [];
    },
  });
  return {
    writable,
    done() {
      saveAs(name, new Blob(pieces, { type: 'application/octet-stream' }));
      pieces = [];
      return `Saved as ${name}, where the browser keeps downloads.`;
    },
  };
}

interface TransferOptions {
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

/** Gives the browser a file to keep. */
export function saveAs(fileName: string, content: string | Blob): void {
  const blob = typeof content === 'string' ? new Blob([content], { type: 'application/octet-stream' }) : content;
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = fileName;
  link.click();
  // The browser has taken hold of it by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
