// Vectors of the kms file, of both versions, with the result expected of every reader.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { inflateSync } from 'node:zlib';
import { faultOf } from '../../src/client/file-format.ts';
import { hex, vectorsOf } from '../support/vectors.ts';

export interface FileVector {
  readonly comment: string;
  /** `valid`, or the fault. */
  readonly expected: string;
  /** Hexadecimal, deflated. */
  readonly file: string;
  readonly messageLength?: number;
  readonly messageSha256?: string;
}

/** By name, without `.json`. */
export function fileVectors<V extends FileVector>(folder: string): ReadonlyMap<string, V> {
  const names = readdirSync(new URL(`../vectors/${folder}/`, import.meta.url)).filter((name) => name.endsWith('.json'));
  return new Map(names.map((name) => name.slice(0, -'.json'.length)).map((n) => [n, vectorsOf(`${folder}/${n}`)]));
}

export const fileOf = ({ file }: Pick<FileVector, 'file'>): Uint8Array => new Uint8Array(inflateSync(hex(file)));

export const isItsMessage = (bytes: Uint8Array, { messageSha256 }: FileVector): boolean =>
  createHash('sha256').update(bytes).digest('hex') === messageSha256;

/** Checks that the file decrypted to its message, or failed with exactly its fault. */
export function cameOutAsTold(vector: FileVector, { bytes, error }: { bytes: Uint8Array; error?: unknown }): void {
  if (vector.expected === 'valid') {
    assert.equal(error, undefined);
    assert.equal(bytes.length, vector.messageLength);
    assert.ok(isItsMessage(bytes, vector));
  } else {
    assert.equal(faultOf(error), vector.expected, String(error));
    assert.equal(bytes.length, 0);
  }
}
