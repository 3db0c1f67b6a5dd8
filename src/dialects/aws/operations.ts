// All operations of AWS KMS by name.
import { aliasOperations } from './aliases.ts';
import { dataKeyOperations } from './data-keys.ts';
import type { OperationName } from './field-table.ts';
import { importOperations } from './import.ts';
import { keyLifeOperations } from './key-life.ts';
import { messageOperations } from './messages.ts';
import type { AwsOperation } from './operation.ts';
import { policyOperations } from './policies.ts';
import { rotationOperations } from './rotation.ts';
import { signatureOperations } from './signatures.ts';
import { tagOperations } from './tags.ts';

export const operations: Readonly<Record<OperationName, AwsOperation>> = {
  ...messageOperations,
  ...dataKeyOperations,
  ...signatureOperations,
  ...keyLifeOperations,
  ...aliasOperations,
  ...tagOperations,
  ...rotationOperations,
  ...importOperations,
  ...policyOperations,
};

export function isOperation(name: string): name is OperationName {
  return Object.hasOwn(operations, name);
}
