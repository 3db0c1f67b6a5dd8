// The text of the seal file: its shape, parsed strictly and written in only one way, so that each text has one meaning.
// The wrapped keys and the MAC are checked in seal.ts. Format: docs/seal-format.md.
import { fromBase64Url, fromUtf8, toBase64Url, utf8 } from '../crypto/bytes.ts';
import { xWingPublicKeyLength } from '../crypto/x-wing.ts';
import { KmsError } from '../errors.ts';
import { custodianKinds } from '../model/custodian-kinds.ts';
import { isJsonObject } from '../model/json.ts';
import { commitmentLength } from './master-key.ts';
import { proofLength, type Slot, type SlotParam, slotId, wrappedLength } from './slot.ts';
import { readingKeysLength, tenantKeyLength } from './tenant-keys.ts';

const format = 'kms-seal';
export const version = 1;
/** Bytes that wrapping adds: nonce and tag. */
const wrapping = 24 + 16;
const wrappedKey = tenantKeyLength + wrapping;
const wrappedReadingKeys = readingKeysLength + wrapping;
const wrappedChainKey = 32 + wrapping;

export interface SealHeader {
  readonly applianceId: string;
  /** The commitment to the master key. */
  readonly master: string;
  /** The wrapped chain keys of earlier master keys, by their commitments. */
  readonly former: ReadonlyMap<string, Uint8Array>;
  readonly slots: readonly (Slot & { readonly wrapped: Uint8Array })[];
  /**
   * Wrapped store keys by directory, then by epoch: the whole key, or the reading keys of a retired epoch, told apart
   * by length.
   */
  readonly keys: ReadonlyMap<string, ReadonlyMap<number, Uint8Array>>;
}

/** The text that the MAC covers. */
export function headerText(header: SealHeader): string {
  return JSON.stringify(headerFields(header));
}

export function formatHeader(header: SealHeader, mac: Uint8Array): Uint8Array {
  return utf8(`${JSON.stringify({ ...headerFields(header), mac: toBase64Url(mac) }, null, 2)}\n`);
}

/** Parses the bytes of a seal file; throws `corrupt` for anything but the output of `formatHeader`. */
export function parseHeader(bytes: Uint8Array, name: string): { header: SealHeader; mac: Uint8Array } {
  const damaged = (what: string): KmsError =>
    new KmsError('corrupt', `${name}: the seal file is damaged: ${what}`, {
      hint: 'restore it from a backup; without it no data can be read',
    });
  const text = fromUtf8(bytes);
  if (text === undefined) throw damaged('expected UTF-8 text');
  let fields: unknown;
  try {
    fields = JSON.parse(text);
  } catch {
    throw damaged('expected JSON');
  }
  if (!isJsonObject(fields) || fields.format !== format) throw damaged(`expected the format "${format}"`);
  if (typeof fields.version === 'number' && fields.version !== version) {
    throw new KmsError('corrupt', `${name}: expected seal version ${version}, found ${fields.version}`, {
      hint: 'it was written by a newer kms: run that one',
    });
  }
  const header = readFields(fields);
  const mac = bytesOf(fields.mac, 32);
  if (!header || !mac) throw damaged('a field is missing or malformed');
  if (text !== fromUtf8(formatHeader(header, mac))) throw damaged('expected exactly what this version writes');
  return { header, mac };
}

function headerFields(header: SealHeader): object {
  return {
    format,
    version,
    appliance: header.applianceId,
    master: header.master,
    former: [...header.former].map(([master, chain]) => ({ master, chain: toBase64Url(chain) })),
    slots: header.slots.map((slot) => ({
      id: slot.id,
      kind: slot.kind,
      params: slot.params,
      publicKey: toBase64Url(slot.publicKey),
      master: slot.master,
      proof: toBase64Url(slot.proof),
      wrapped: toBase64Url(slot.wrapped),
    })),
    keys: [...header.keys].map(([store, epochs]) => ({
      store,
      epochs: [...epochs].map(([epoch, wrapped]) => ({
        epoch,
        [wrapped.length === wrappedKey ? 'wrapped' : 'reading']: toBase64Url(wrapped),
      })),
    })),
  };
}

function readFields(fields: Record<string, unknown>): SealHeader | undefined {
  const { appliance, master, former, slots, keys } = fields;
  if (!isHex(appliance, 32) || !isHex(master, commitmentLength)) return;
  if (!Array.isArray(former) || !Array.isArray(slots) || !Array.isArray(keys)) return;
  const readFormer = new Map(former.map(readChainKey).filter((entry) => entry !== undefined));
  const readSlots = slots.map(readSlot).filter((slot) => slot !== undefined);
  const readKeys = new Map(keys.map(readStoreKeys).filter((entry) => entry !== undefined));
  if (
    readSlots.length !== slots.length ||
    readSlots.length === 0 ||
    new Set(readSlots.map(({ id }) => id)).size !== slots.length ||
    readKeys.size !== keys.length
  )
    return;
  if (readFormer.size !== former.length) return;
  return { applianceId: appliance, master, former: readFormer, slots: readSlots, keys: readKeys };
}

function readChainKey(value: unknown): [string, Uint8Array] | undefined {
  if (!isJsonObject(value) || !isHex(value.master, commitmentLength)) return;
  const chain = bytesOf(value.chain, wrappedChainKey);
  return chain && [value.master, chain];
}

function readSlot(value: unknown): SealHeader['slots'][number] | undefined {
  if (!isJsonObject(value) || !isJsonObject(value.params)) return;
  const kind = custodianKinds.find((known) => known === value.kind);
  const publicKey = bytesOf(value.publicKey, xWingPublicKeyLength);
  const proof = bytesOf(value.proof, proofLength);
  const wrapped = bytesOf(value.wrapped, wrappedLength);
  if (!kind || !publicKey || !proof || !wrapped || !isHex(value.master, commitmentLength)) return;
  // Checked so that damage to either is told from a wrong key.
  const id = slotId(publicKey);
  if (value.id !== id) return;
  const params: Record<string, SlotParam> = {};
  for (const [name, param] of Object.entries(value.params)) {
    if (typeof param !== 'string' && typeof param !== 'number' && !isTexts(param)) return;
    Object.defineProperty(params, name, { value: param, enumerable: true });
  }
  return { id, kind, params, publicKey, master: value.master, proof, wrapped };
}

function readStoreKeys(value: unknown): [string, Map<number, Uint8Array>] | undefined {
  if (!isJsonObject(value) || typeof value.store !== 'string' || !Array.isArray(value.epochs)) return;
  const epochs = new Map<number, Uint8Array>();
  for (const entry of value.epochs) {
    if (!isJsonObject(entry)) return;
    const epoch = entry.epoch;
    const wrapped = bytesOf(entry.wrapped, wrappedKey) ?? bytesOf(entry.reading, wrappedReadingKeys);
    if (typeof epoch !== 'number' || !Number.isInteger(epoch) || epoch < 1 || epoch > 0xffff || !wrapped) return;
    epochs.set(epoch, wrapped);
  }
  return epochs.size > 0 ? [value.store, epochs] : undefined;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

function isHex(value: unknown, digits: number): value is string {
  return typeof value === 'string' && value.length === digits && /^[0-9a-f]+$/.test(value);
}

function bytesOf(value: unknown, length: number): Uint8Array | undefined {
  const bytes = typeof value === 'string' ? fromBase64Url(value) : undefined;
  return bytes?.length === length ? bytes : undefined;
}
