// A row of a shared log: one group of transactions, sealed. Associated data bind it to its store, its position, the
// number of transactions before it, the previous row's tag and the epoch of its key, so that the database can neither
// change, move, leave out nor add a row.
//
//   sealed = nonce 24 | ciphertext | tag 16
import { openXChaCha, sealXChaCha } from '../../crypto/aead.ts';
import { concatBytes, equalBytes, toHex, utf8 } from '../../crypto/bytes.ts';
import { type Run, withRun } from '../../model/store-mark.ts';
import { Group, Numbering } from '../commit-group.ts';
import type { Applied } from '../log-file.ts';
import { runOf } from '../log-format.ts';
import { corrupt, keyOf, nonceLength, type StoreKeys, tagLength } from '../store-files.ts';
import type { LogRow } from './engine.ts';

/** The rule of this program: rows sealed as above, appended by the node that has the turn and saw the previous row. */
export const appendRule = 1;

const label = utf8('kms/shared/row/v1');

/** A log position: the last row, and the transactions and runs up to its end. */
export interface Place {
  readonly seq: number;
  readonly tag: Uint8Array;
  /** Number of transactions. */
  readonly sequence: number;
  /** Newest first. */
  readonly runs: readonly Run[];
}

/** Before the first row. */
export const beginning: Place = { seq: 0, tag: new Uint8Array(tagLength), sequence: 0, runs: [] };

/** The store that the rows belong to. */
export interface RowContext {
  readonly uid: Uint8Array;
  readonly keys: StoreKeys;
}

/** Seals `payload` as the row after `place`. */
export function sealRow({ uid, keys }: RowContext, place: Place, payload: Uint8Array, nonce: Uint8Array): LogRow {
  const { epoch } = keys;
  const sealed = sealXChaCha(keys.key('log', epoch), nonce, payload, bind(uid, place, epoch));
  return { seq: place.seq + 1, epoch, tag: sealed.slice(-tagLength), sealed: concatBytes(nonce, sealed) };
}

/** The first row of a store, without transactions. */
export function firstRow(context: RowContext, nonce: Uint8Array): LogRow {
  return sealRow(context, beginning, new Group(new Numbering()).payload(false), nonce);
}

/**
 * Hands the payload of the row after `place` to `apply`, and returns the row's position. Throws `corrupt` for any other
 * row.
 */
export function readRow(
  { uid, keys }: RowContext,
  place: Place,
  row: LogRow,
  apply: (payload: Uint8Array, name: string, offset: number) => Applied,
): Place {
  const name = logNameOf(uid);
  const { seq, epoch, sealed } = row;
  if (seq !== place.seq + 1) throw corrupt(name, place.seq + 1, `the row is missing; the next one is ${seq}`);
  const key = keyOf(keys, 'log', epoch, name);
  const nonce = sealed.subarray(0, nonceLength);
  const isWhole = sealed.length >= nonceLength + tagLength && equalBytes(row.tag, sealed.subarray(-tagLength));
  const payload = isWhole ? openXChaCha(key, nonce, sealed.subarray(nonceLength), bind(uid, place, epoch)) : undefined;
  if (!payload) throw corrupt(name, seq, 'the row does not verify');
  return behind(place, row, apply(payload, name, seq));
}

/** The position of a row that follows `place`, given the transactions in it. */
export function behind({ sequence, runs }: Place, { seq, tag }: LogRow, { transactions, begins }: Applied): Place {
  return {
    seq,
    tag,
    sequence: sequence + transactions,
    runs: begins ? withRun(runs, runOf(sequence, tag)) : runs,
  };
}

/** Name of the log in errors, where an offset is a row number. */
export function logNameOf(uid: Uint8Array): string {
  return `shared log ${toHex(uid)}`;
}

function bind(uid: Uint8Array, { seq, sequence, tag }: Place, epoch: number): Uint8Array {
  const numbers = new Uint8Array(20);
  const view = new DataView(numbers.buffer);
  view.setBigUint64(0, BigInt(seq + 1));
  view.setBigUint64(8, BigInt(sequence));
  view.setUint32(16, epoch);
  return concatBytes(label, uid, numbers, tag);
}
