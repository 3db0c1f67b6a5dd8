// All operations of KMIP that are served. Any other gets "Operation Not Supported".
import { addAttribute, deleteAttribute, modifyAttribute, setAttribute } from './attribute-changes.ts';
import { decrypt, encrypt, hash, mac, macVerify, rngRetrieve, rngSeed, sign, signatureVerify } from './cryptography.ts';
import { deriveKey } from './deriving.ts';
import {
  activate,
  archive,
  destroy,
  getUsageAllocation,
  obtainLease,
  recover,
  rekey,
  rekeyKeyPair,
  revoke,
} from './lifecycle.ts';
import { create, createKeyPair } from './making.ts';
import type { Operation } from './operation.ts';
import { check, discoverVersions, get, getAttributeList, getAttributes, queryOperation } from './reading.ts';
import { register } from './registering.ts';
import { locate } from './searching.ts';

export const operations: readonly Operation[] = [
  create,
  createKeyPair,
  register,
  rekey,
  deriveKey,
  locate,
  check,
  get,
  getAttributes,
  getAttributeList,
  addAttribute,
  modifyAttribute,
  deleteAttribute,
  obtainLease,
  getUsageAllocation,
  activate,
  revoke,
  destroy,
  archive,
  recover,
  queryOperation(() => operations),
  rekeyKeyPair,
  discoverVersions,
  encrypt,
  decrypt,
  sign,
  signatureVerify,
  mac,
  macVerify,
  rngRetrieve,
  rngSeed,
  hash,
  setAttribute,
];

const byCode = new Map(operations.map((operation) => [operation.code, operation]));

export function operationOf(code: number): Operation | undefined {
  return byCode.get(code);
}
