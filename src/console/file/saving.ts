// Where the bytes of a file go that is made in the browser: straight to the disk where the browser lets a page do that, else into memory
// and from there to the downloads. Either way nothing is left of a file that was not finished.
import { saveAs } from '../parts/secret.tsx';

export interface Destination {
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
 * Asks where to, where the browser can. Has to be called when somebody has just clicked. Rejects with an `AbortError` where they
 * chose nothing.
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
