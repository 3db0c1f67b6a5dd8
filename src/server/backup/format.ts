// The bytes of a backup file around what it carries. Format: docs/backup-format.md.
//
//   file = header 32 | part* | end
//   part = 1 | name length u16 | name | length u64 | bytes
//   end  = 0 | manifest length u32 | manifest | sealed length u32 | nonce 24 | sealed summary | SHA-256 of all but the parts' bytes
import { equalBytes } from '../../crypto/bytes.ts';
import { toHex, utf8 } from '../../crypto/encoding.ts';
import { KmsError } from '../../errors.ts';

export const formatVersion = 1;
export const headerLength = 32;
export const nonceLength = 24;
export const digestLength = 32;
export const partMark = 1;
export const endMark = 0;
/** Bytes in the head of a part, without its name. */
export const partHeadLength = 1 + 2 + 8;
export const summaryLabel = utf8('kms/backup/v1');

const magic = utf8('KMS-BKUP');
/** No manifest is longer: it names each file in about 150 bytes. */
export const longestManifest = 256 * 1024 * 1024;

/** magic 8 | version u16 | zero u16 | appliance id 16 | zero u32. */
export function encodeHeader(applianceId: string): Uint8Array {
  const bytes = new Uint8Array(headerLength);
  bytes.set(magic);
  new DataView(bytes.buffer).setUint16(8, formatVersion);
  bytes.set(Uint8Array.fromHex(applianceId), 12);
  return bytes;
}

/** The appliance's id. */
export function decodeHeader(name: string, bytes: Uint8Array): string {
  if (bytes.length < headerLength || !equalBytes(bytes.subarray(0, 8), magic)) {
    throw new KmsError('corrupt', `${name}: this is no backup of kms`, {
      hint: 'give a file that `kms backup create` made',
    });
  }
  const version = new DataView(bytes.buffer, bytes.byteOffset).getUint16(8);
  if (version > formatVersion) {
    throw new KmsError('refused', `${name}: backup format ${version}, this program reads up to ${formatVersion}`, {
      hint: 'it was made by a newer kms, or is damaged: use that program',
    });
  }
  if (version !== formatVersion || bytes.subarray(10, 12).some(Boolean) || bytes.subarray(28, 32).some(Boolean)) {
    throw damaged(name, 'its header is not one');
  }
  return toHex(bytes.subarray(12, 28));
}

export function partHead(name: string, length: number): Uint8Array {
  const text = utf8(name);
  const bytes = new Uint8Array(partHeadLength + text.length);
  const view = new DataView(bytes.buffer);
  view.setUint8(0, partMark);
  view.setUint16(1, text.length);
  bytes.set(text, 3);
  view.setBigUint64(3 + text.length, BigInt(length));
  return bytes;
}

export function u32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value);
  return bytes;
}

export function damaged(name: string, what: string): KmsError {
  return new KmsError('corrupt', `${name}: the backup is damaged: ${what}`, {
    hint: 'use another backup; nothing was changed',
  });
}
