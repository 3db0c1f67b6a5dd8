// Names of keys as requests of clients of AWS KMS have them: ids, ARNs and aliases. A key's names here, other than a
// UUID, are aliases there.
import { isUuid } from '../../core/aws-names.ts';
import { isIdOfKeys } from '../../core/managed-key-names.ts';

export interface Place {
  readonly account: string;
  readonly region: string;
}

/** @param awsId from `awsIdOf`. */
export function keyArn({ account, region }: Place, awsId: string): string {
  return `arn:aws:kms:${region}:${account}:key/${awsId}`;
}

export function aliasArn({ account, region }: Place, name: string): string {
  return `arn:aws:kms:${region}:${account}:alias/${name}`;
}

/** A key as a request names it. */
type KeyRef =
  /** Its id there. */
  | { readonly uuid: string }
  | { readonly alias: string }
  /** The type of the error, and its message. */
  | { readonly error: string; readonly message: string };

/** Reads an id, an ARN, or where they are taken an alias. */
export function keyRefOf(text: string, { account, region }: Place, takesAlias: boolean): KeyRef {
  const unknown = { error: 'NotFoundException', message: `Invalid keyId '${text.slice(0, 256)}'` };
  if (text.startsWith('arn:')) {
    const [, partition, service, inRegion, ofAccount, resource = '', ...rest] = text.split(':');
    const isOfKms = partition === 'aws' && service === 'kms' && rest.length === 0;
    if (!isOfKms || !/^(?:key\/(?!alias\/)|alias\/)/.test(resource)) {
      return { error: 'InvalidArnException', message: `Invalid arn ${text.slice(0, 256)}` };
    }
    if (inRegion !== region || ofAccount !== account) {
      const message = `${text.slice(0, 256)} is elsewhere: this is account ${account} in region ${region}.`;
      return { error: 'NotFoundException', message };
    }
    return keyRefOf(resource.startsWith('key/') ? resource.slice(4) : resource, { account, region }, takesAlias);
  }
  // An id is no alias, though all names of a key find it here.
  if (text.startsWith('alias/')) return takesAlias && !isIdOfKeys(text.slice(6)) ? { alias: text.slice(6) } : unknown;
  if (isUuid(text)) return { uuid: text.toLowerCase() };
  return unknown;
}
