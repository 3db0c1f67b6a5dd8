// Rules for what is said of a managed key when it is made or changed: name, uses, dates, tags, versions and rotation.
import { fieldsError, invalidField, KmsError } from '../errors.ts';
import type { JsonObject } from '../model/json.ts';
import type { KeyState } from '../model/key-states.ts';
import { type KeyType, type KeyUse, keyUses, mostSecretVersions } from '../model/key-types.ts';
import { checkAlias, checkRingName, reservedKeyNames } from '../model/names.ts';
import type { ManagedKey } from '../store/tables/managed-keys.ts';
import { isUuid } from './aws-names.ts';
import type { Context } from './context.ts';
import { isIdOfKeys } from './managed-key-names.ts';

const mostTags = 50;
const longestTag = 256;

/** @param dialect `aws` makes a UUID by itself for each new key, which no client chooses. */
export function checkKeyName(name: string, dialect?: string): string {
  const lower = checkRingName(name);
  const isOwnId = dialect === 'aws' && isUuid(lower);
  if (!isOwnId && !isFree(lower)) throw invalidField('name', otherThan(lower));
  return lower;
}

/** A name in the form of an id would lead clients with that id to another key. */
function isFree(lower: string): boolean {
  return !reservedKeyNames.has(lower) && !isIdOfKeys(lower);
}

function otherThan(lower: string): string {
  return `expected another name than ${lower}${isIdOfKeys(lower) ? ', which has the form of a key id' : ''}`;
}

export function checkKeyAlias(given: string): string {
  const alias = checkAlias(given, 'alias');
  if (!isFree(alias)) throw invalidField('alias', otherThan(alias));
  return alias;
}

/** Throws `invalid`: nothing new is ever made with a secret, so no use of it would be the one to rotate it. */
export function checkRotation(type: KeyType, rotateAfter: number | null | undefined): void {
  if (type !== 'secret' || typeof rotateAfter !== 'number') return;
  throw invalidField('rotateAfter', 'expected none: a secret never rotates by itself');
}

export function orderedUses(uses: readonly KeyUse[]): readonly KeyUse[] {
  return [...new Set(uses)];
}

/** Throws `conflict` if a key that is there is for other uses; `export` is said by `exportable`. */
export function needSameUses({ uses }: ManagedKey, wanted: readonly KeyUse[] | undefined): void {
  const text = (some: readonly KeyUse[]): string =>
    keyUses.filter((use) => use !== 'export' && some.includes(use)).join(', ');
  if (!wanted || text(wanted) === text(uses)) return;
  throw fieldsError('conflict', [{ field: 'uses', message: `the key that is there is for ${text(uses)}` }]);
}

export function checkedDates(activateAt: number | undefined, deactivateAt: number | undefined) {
  if (activateAt !== undefined && deactivateAt !== undefined && deactivateAt <= activateAt) {
    throw invalidField('deactivateAt', 'expected a time after activateAt');
  }
  return { activateAt, deactivateAt };
}

/** Throws `conflict` for a new date of activation if that is over: it would be shown without having an effect. */
export function checkActivation(state: KeyState, before: number | undefined, wanted: number | null | undefined): void {
  if (state === 'pre-active' || typeof wanted !== 'number' || wanted === before) return;
  throw fieldsError('conflict', [
    { field: 'activateAt', message: `the key is ${state}: only one that was never active has a time for that` },
  ]);
}

export function checkedTags(tags: JsonObject): JsonObject {
  const entries = Object.entries(tags);
  if (entries.length > mostTags) throw invalidField('tags', `expected at most ${mostTags} tags`);
  for (const [name, value] of entries) {
    if (typeof value !== 'string') throw invalidField('tags', 'expected a text for every tag');
    if (name === '' || name.length > longestTag || value.length > longestTag) {
      throw invalidField('tags', `expected names and texts of at most ${longestTag} characters`);
    }
  }
  return tags;
}

export function needVersions(
  { latestVersion }: ManagedKey,
  {
    minDecryptVersion: decrypts,
    minEncryptVersion: encrypts,
  }: Pick<ManagedKey, 'minDecryptVersion' | 'minEncryptVersion'>,
): void {
  if (decrypts > Math.max(1, latestVersion)) {
    const latest = `latest key version is ${latestVersion}`;
    throw new KmsError('invalid', `cannot set min decryption version of ${decrypts}, ${latest}`);
  }
  if (encrypts !== 0 && (encrypts < decrypts || encrypts > latestVersion)) {
    const range = `expected 0, or a version from ${decrypts} to ${latestVersion}`;
    throw new KmsError('invalid', `cannot set min encryption version of ${encrypts}, ${range}`);
  }
}

/** Settings of a secret, which are among its `props`. */
export function settingsOf({ props }: Pick<ManagedKey, 'props'>) {
  const { maxVersions: most, casRequired } = props;
  const isMost = typeof most === 'number' && Number.isSafeInteger(most) && most >= 0 && most <= mostSecretVersions;
  return { maxVersions: isMost ? most : 0, casRequired: casRequired === true };
}

export function mostKept(key: Pick<ManagedKey, 'props'>): number {
  return settingsOf(key).maxVersions || mostSecretVersions;
}

/** With a lower limit the next writes destroy versions: rules for deleting the key hold for that, too. */
export function touchVersions(
  ctx: Pick<Context, 'touches'>,
  key: ManagedKey,
  { props = key.props }: Partial<Pick<ManagedKey, 'props'>>,
): void {
  const most = mostKept({ props });
  const isLower = key.path !== undefined && most < mostKept(key) && key.latestVersion > 0;
  const object = { type: 'managed-key', id: key.id, name: key.name } as const;
  if (isLower) ctx.touches({ actions: ['key.delete'], ring: key.name, object });
}

/** Settings that a secret with a path keeps among its `props`, whatever else is written there. */
export function secretSettings({ path, props }: ManagedKey): JsonObject {
  const { maxVersions, casRequired } = props;
  if (path === undefined) return {};
  return { ...(maxVersions !== undefined && { maxVersions }), ...(casRequired !== undefined && { casRequired }) };
}
