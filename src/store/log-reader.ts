// Reads one log file from its first record to its last, proving each. Stops at the first byte that does not verify, unless
// that is the torn end of the last file.
import { equalBytes } from '../crypto/bytes.ts';
import { corrupt, decodeFileHeader, type FileHeader, keyOf, tagLength } from './file-header.ts';
import { logHeaderLength, logHeaderVerifies, prefixLength, type RecordPlace, RecordSealer } from './log-format.ts';
import type { StoreKeys } from './store-keys.ts';
import { damageAt } from './torn-tail.ts';

/** What must be true of a file, from the files before it. */
export interface LogStart {
  readonly uid: Uint8Array;
  readonly generation: number;
  readonly sequence: number;
  readonly chain: Uint8Array;
}

export interface LogEnd extends RecordPlace {
  readonly header: FileHeader;
  /** Bytes after `offset` that belong to no whole record: a write that was never acknowledged. */
  readonly torn: number;
}

/**
 * Hands each payload to `apply`, which answers how many transactions it held. `last` says that no file follows, so that the
 * end may be torn.
 */
export function readLog(
  name: string,
  file: Uint8Array,
  keys: StoreKeys,
  start: LogStart,
  last: boolean,
  apply: (payload: Uint8Array, name: string, offset: number) => number,
): LogEnd {
  const header = readLogHeader(name, file, keys, start);
  const sealer = new RecordSealer(keyOf(keys, 'log', header.epoch, name), start.uid, start.generation);
  let place: RecordPlace = {
    offset: logHeaderLength,
    sequence: start.sequence,
    chain: file.slice(logHeaderLength - tagLength, logHeaderLength),
  };
  while (place.offset < file.length) {
    const { offset } = place;
    const length = file.length - offset < prefixLength ? undefined : sealer.lengthAt(file, offset);
    const end = length === undefined ? undefined : offset + prefixLength + length;
    const payload =
      length !== undefined && end !== undefined && end <= file.length ? sealer.open(file, length, place) : undefined;
    if (payload === undefined || end === undefined) {
      const damage = last ? damageAt(file, offset, length, sealer) : 'a record does not verify';
      if (damage !== undefined) throw corrupt(name, offset, damage);
      return { ...place, header, torn: file.length - offset };
    }
    place = {
      offset: end,
      sequence: place.sequence + apply(payload, name, offset),
      chain: file.slice(end - tagLength, end),
    };
  }
  return { ...place, header, torn: 0 };
}

function readLogHeader(name: string, file: Uint8Array, keys: StoreKeys, start: LogStart): FileHeader {
  const header = decodeFileHeader('log', name, file);
  if (file.length < logHeaderLength) throw corrupt(name, file.length, 'the file ends inside its header');
  if (!logHeaderVerifies(keyOf(keys, 'log', header.epoch, name), file))
    throw corrupt(name, 0, 'the header does not verify');
  if (!equalBytes(header.uid, start.uid)) throw corrupt(name, 16, 'the file belongs to another store');
  if (header.generation !== start.generation) {
    throw corrupt(name, 32, `the file is number ${header.generation}, not ${start.generation}`);
  }
  if (header.sequence !== start.sequence || !equalBytes(header.chain, start.chain)) {
    throw corrupt(
      name,
      40,
      'the file does not follow what stands before it: something is missing, or from another time',
    );
  }
  return header;
}
