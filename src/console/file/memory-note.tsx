// Says beforehand where this browser cannot write files of any size.
import { bytesText } from '../overview/amounts.ts';
import { mostInMemory, writesToDisk } from './saving.ts';

export function MemoryNote() {
  if (writesToDisk()) return null;
  return (
    <p data-note>
      This browser does not let a page write a file piece by piece: files of up to {bytesText(mostInMemory)} are held in
      memory and then saved as a download. For larger ones use another browser or <code>kms encrypt</code> and{' '}
      <code>kms decrypt</code>.
    </p>
  );
}
