// Further things that a record names, after the one that something was done to. Parts of that thing are not told: a
// keyring is made with its first key, and is still one thing.
import type { ActivityDetails } from '../../model/activity-details.ts';
import { countedText, countText } from '../text.ts';
import { typeNames } from './type-names.ts';

/** Types of the objects that go without saying, by the type of the thing. */
const unsaid: Readonly<Partial<Record<string, readonly string[]>>> = {
  keyring: ['key'],
  'asym-keyring': ['key'],
  'managed-key': ['key'],
  'transit-ring': ['key'],
  // Its proofs, and those who owned it before and after.
  apikey: ['proof', 'user'],
  // The pair before.
  'tang-pair': ['tang-pair'],
};

/** ` and 2 more`, or ` with 2 API keys` of what belongs to the thing; empty if there is nothing else. */
export function moreText({ object, objects = [], objectCount = objects.length }: ActivityDetails): string {
  const others = objects.filter(({ type }) => !object || !unsaid[object.type]?.includes(type));
  if (objects.length > 0 && others.length === 0) return '';
  // A record names only so many, and counts the rest.
  const count = others.length + Math.max(0, objectCount - objects.length) - (object ? 0 : 1);
  if (count <= 0) return '';
  const [type, ...otherTypes] = new Set(others.map((each) => each.type));
  const belongs = object !== undefined && type !== undefined && type !== object.type && otherTypes.length === 0;
  return belongs ? ` with ${countedText(count, typeNames[type] ?? type)}` : ` and ${countText(count)} more`;
}
