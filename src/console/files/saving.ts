// Saves files that are made in the browser: straight to disk if the browser allows it, else through memory to the
// downloads folder. Either way an unfinished file leaves nothing behind.

interface Destination {
  readonly writable: WritableStream<Uint8Array>;
  /** To be called once everything is written; returns a text on where the file went. */
  readonly done: () => string;
}

/** Maximum bytes of one file that are held in memory. */
export const mostInMemory = 512 * 1024 * 1024;

interface PickerWindow {
  readonly showSaveFilePicker?: (options: { readonly suggestedName: string }) => Promise<FileSystemFileHandle>;
}

/** Whether files of any size can be written. */
export function writesToDisk(): boolean {
  return typeof (window as PickerWindow).showSaveFilePicker === 'function'; // not in every browser, so not in its types
}

/**
 * Asks for a destination if the browser can. Must be called right after a click. Rejects with an `AbortError` if none
 * is chosen.
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
      return `Saved as ${name} in your downloads.`;
    },
  };
}

interface TransferOptions {
  readonly file: Blob;
  readonly through: ReadableWritablePair<Uint8Array, Uint8Array>;
  readonly destination: Destination;
  readonly signal: AbortSignal;
  /** Called with the number of bytes read so far, no more often than the screen can show. */
  readonly onProgress: (read: number) => void;
}

/** Resolves with a text on where the file went. If it rejects, nothing is left behind. */
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

/** Name of the encrypted file. */
export function encryptedName(name: string): string {
  return `${name}.kms`;
}

/** Name of the decrypted file. */
export function decryptedName(name: string): string {
  const without = name.replace(/\.kms$/i, '');
  return without !== name && without !== '' ? without : `${name}.decrypted`;
}

/** Downloads content as a file. */
export function saveAs(fileName: string, content: string | Blob): void {
  const blob = typeof content === 'string' ? new Blob([content], { type: 'application/octet-stream' }) : content;
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = fileName;
  link.click();
  // By then the browser has opened the URL.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
