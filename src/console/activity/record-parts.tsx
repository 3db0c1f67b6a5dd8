// Parts of an activity record as text: who did what, to what, from where, and with which result. Names replace ids if
// they are known.
import { provedIn, type ResourceRef } from '../../model/activity-details.ts';
import { hrefTo } from '../navigation.ts';
import { shortId } from '../text.ts';
import { isAboutKey } from './key-actions.ts';
import { type ActivityRecord, isSubjectKind, type Names } from './records.ts';
import { typeNames } from './type-names.ts';
import { outcomeOf } from './words.ts';

/** Whether the request was allowed, and whether it succeeded. */
export function Verdict({ record }: { readonly record: ActivityRecord }) {
  const { tone, text } = verdicts[outcomeOf(record)];
  return (
    <span data-tag data-tone={tone}>
      {text}
    </span>
  );
}

const verdicts = {
  done: { tone: 'good', text: 'granted' },
  failed: { tone: 'warn', text: 'granted, but failed' },
  denied: { tone: 'bad', text: 'denied' },
  waiting: { tone: 'warn', text: 'waits for approval' },
} as const;

const roles: ReadonlyMap<string, string> = new Map([
  ['local', 'The administrator at the machine'],
  ['network', 'Somebody on the network, without a credential'],
  ['operator', 'An operator of the whole appliance'],
]);

interface ActorProps {
  readonly keyid: string;
  readonly names: Names;
  /** Whether it stands inside a sentence. */
  readonly isInside?: boolean;
}

/** The caller: an API key, a user, the administrator at the machine, an operator, or a client without a credential. */
export function Actor({ keyid, names, isInside = false }: ActorProps) {
  const cased = (text: string): string => (isInside ? `${text.slice(0, 1).toLowerCase()}${text.slice(1)}` : text);
  const role = roles.get(keyid);
  if (role !== undefined) return <span title={keyid}>{cased(role)}</span>;
  const [prefix] = keyid.split('_');
  const known = names.get(keyid);
  const kind = prefix === 'apik' ? 'API key ' : prefix === 'user' ? cased('User ') : '';
  const name =
    known === undefined ? (
      <code data-whole title={keyid}>
        {keyid.includes('_') ? shortId(keyid) : keyid}
      </code>
    ) : (
      <bdi title={keyid}>{known}</bdi>
    );
  // The kind is part of the text because names are free: a user may have an API key's name, or call themselves
  // administrator.
  const said = (
    <>
      {kind}
      {name}
    </>
  );
  if (prefix === 'apik') return <a href={hrefTo('apikey', { id: keyid })}>{said}</a>;
  if (prefix === 'user' && known !== undefined) return <a href={hrefTo('user', { username: known })}>{said}</a>;
  return <span>{said}</span>;
}

/** A program that logs in as an API key; its name is known once its token was verified. */
export function Program({ record: { props } }: { readonly record: ActivityRecord }) {
  const { subject, proof } = provedIn(props);
  if (subject === undefined) return <span title={proof}>A program</span>;
  return (
    <span title={proof}>
      Program{' '}
      <bdi>
        <code data-any>{subject}</code>
      </bdi>
    </span>
  );
}

/** The thing that something was done to. */
export function ThingLink({ thing, names }: { readonly thing: ResourceRef; readonly names: Names }) {
  const { type, id, name = names.get(id) } = thing;
  const shown =
    name === undefined ? (
      <code data-whole title={id}>
        {shortId(id)}
      </code>
    ) : (
      <bdi title={id}>{name}</bdi>
    );
  const href = hrefOf(thing);
  return (
    <span>
      {typeNames[type] ?? type} {href === undefined ? shown : <a href={href}>{shown}</a>}
    </span>
  );
}

function hrefOf({ type, id, name }: Omit<ResourceRef, 'type'> & { readonly type: string }): string | undefined {
  switch (type) {
    case 'account':
      return hrefTo('account', { id });
    case 'apikey':
      return hrefTo('apikey', { id });
    case 'approval':
      return hrefTo('approval', { id });
    case 'approval-rule':
      return hrefTo('approvalRule', { id });
    case 'broken-glass':
      return hrefTo('brokenGlass');
    case 'asset':
      return hrefTo('asset', { id });
    case 'asym-keyring':
      return hrefTo('asym');
    case 'managed-key':
    case 'transit-ring':
      return name === undefined ? hrefTo('managedKeys') : hrefTo('managedKey', { name });
    case 'keyring':
      return name === undefined ? undefined : hrefTo('keyring', { name });
    case 'user':
      return name === undefined ? undefined : hrefTo('user', { username: name });
    default:
      return undefined;
  }
}

/** The kind of a record's ring, judged by the action, and the ring's page. */
export function ringOf(action: string, name: string): { readonly type: ResourceRef['type']; readonly href: string } {
  if (action.startsWith('asym.')) return { type: 'asym-keyring', href: hrefTo('asym') };
  if (isAboutKey(action)) return { type: 'managed-key', href: hrefTo('managedKey', { name }) };
  return { type: 'keyring', href: hrefTo('keyring', { name }) };
}

/** The page with all records about a thing; undefined if its kind has no such page. */
export function subjectHref({ type, id, name }: ResourceRef): string | undefined {
  if (type === 'keyring' || type === 'asym-keyring') {
    return name === undefined ? undefined : hrefTo('activityAbout', { kind: type, id: name.toLowerCase() });
  }
  return isSubjectKind(type) ? hrefTo('activityAbout', { kind: type, id }) : undefined;
}

export function From({ record: { address, keyid, reporter } }: { readonly record: ActivityRecord }) {
  if (address !== undefined) return <code data-any>{address}</code>;
  return <span data-quiet>{keyid === 'local' && reporter === undefined ? 'the machine itself' : 'not known'}</span>;
}
