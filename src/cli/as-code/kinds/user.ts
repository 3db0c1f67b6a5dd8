// Users in configuration files: their name is the user name. A new one is invited, and the link of the invite is the
// secret that comes of it.
import type { ApprovalRule } from '../../../api/approvals.ts';
import type { User } from '../../../api/users.ts';
import type { InputOf } from '../../../client/client.ts';
import { items } from '../../../client/pages.ts';
import { KmsError } from '../../../errors.ts';
import { sameDomain } from '../../../model/hosts.ts';
import type { JsonObject } from '../../../model/json.ts';
import { differing, grantedIn, plainFlags, withoutDefaults } from '../differing.ts';
import type { After, Desk, Difference, Found, Kind, Wanted, Workplace } from '../kind.ts';
import { keepingMark, marked, unmarked } from '../mark.ts';
import { waitsAs } from '../waiting.ts';
import { ifAllowed, ifThere } from './account.ts';

function foundOf({ id, username, email, firstName, lastName, flags, props, state }: User): Found {
  const { props: own, lacks, ...mark } = unmarked(props);
  const unfinished = lacks === 'all' && state === 'invited' && ({ isUnfinished: true } as const);
  const fields = { email, firstName, lastName, flags: plainFlags(flags), props: own };
  return { id, name: username, fields, ...mark, ...unfinished };
}

/** The form in which names compare: NFC, in lower case, and an address by its domain in one form. */
export function userKey(name: string): string {
  return sameDomain(name.normalize('NFC')).toLowerCase();
}

function bodyOf({ name, fields }: Wanted, props: object): InputOf<'inviteUser'> {
  const { email, firstName, lastName, flags } = fields;
  const known = { email: String(email), firstName: String(firstName), lastName: String(lastName) };
  // Cast: the schema has checked the flags.
  return { username: name, ...known, flags: Object(flags) as Record<string, boolean>, props: { ...props } };
}

/**
 * One whose link was lost is invited again, and one whose link was kept is only made whole; any other that is there was
 * made by somebody else.
 */
async function create(desk: Workplace, wanted: Wanted, unfinished?: Found): Promise<void> {
  const { client, managedBy } = desk;
  const { name: username, fields } = wanted;
  if (unfinished?.isKept) return finish(desk, wanted, unfinished);
  const body = bodyOf(wanted, marked(fields.props, managedBy, desk.goesOn ? 'all' : undefined));
  const { loginUrl } = await client.inviteUser({ ...body, ...(!unfinished && { unique: true }) });
  const token = new URL(loginUrl).searchParams.get('token') ?? '';
  try {
    await desk.deliver({ label: 'invite', text: `${loginUrl}\n` });
    if (desk.goesOn) await client.updateUser({ username, props: marked(fields.props, managedBy) });
    await client.validateInvite({ token });
  } catch (cause) {
    // The link is kept: the next run goes on with this user.
    if (desk.goesOn && waitsAs(cause).length > 0) throw cause;
    const left = await takenBack(desk, username, token);
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new KmsError('refused', `the invite could not be made whole, ${left}: ${why}`, { cause });
  }
}

/** Addresses by which a user may log in. */
function addressesOf({ name, fields }: Pick<Found, 'name' | 'fields'>): readonly string[] {
  return [name, ...(typeof fields.email === 'string' ? [fields.email] : [])].map(userKey);
}

function needsRoomOf(wanted: Wanted, leaving: Found): boolean {
  const taken = addressesOf(leaving);
  return addressesOf(wanted).some((address) => taken.includes(address));
}

/** The name of a rule that this user's removal would leave with fewer approvers than it takes, even to change it. */
async function ruleWithout({ client }: Desk, found: Found, { leaving, wanted }: After) {
  const { id } = found;
  const answer = await ifAllowed(client.listApprovalRules());
  // One that makes room goes before any rule is changed.
  const isFirst = wanted.some((each) => each.kind === 'user' && needsRoomOf(each, found));
  const isSettled = (rule: ApprovalRule): boolean =>
    leaving.has(rule.id) ||
    wanted.some(({ kind, name, fields }) => kind === 'rule' && name === rule.name && fields.approvers !== undefined);
  const lacking = (answer === 'unseen' ? [] : answer.rules).find((rule) => {
    const { users = [] } = rule.approvers;
    if (rule.expires !== null && rule.expires <= Date.now()) return false;
    // One that was removed has no name.
    const others = users.filter((each) => each.id !== id && each.name !== '' && !leaving.has(each.id));
    const isNeeded = users.some((each) => each.id === id) && others.length < rule.count;
    return isNeeded && (isFirst || !isSettled(rule));
  });
  return lacking?.name;
}

/** Makes an invited user whole; the file may have changed since. */
async function finish({ client, managedBy }: Workplace, { fields }: Wanted, found: Found): Promise<void> {
  const { props, ...named } = fields;
  const rest: JsonObject = { flags: {}, ...named };
  const changed = differences(rest, found).map(({ field }) => field);
  const change = Object.fromEntries(Object.entries(rest).filter(([field]) => changed.includes(field)));
  await client.updateUser({ username: found.name, ...change, props: marked(props, managedBy) });
}

function differences(fields: JsonObject, found: Found): Difference[] {
  return differing({ ...fields, ...(fields.flags !== undefined && { flags: plainFlags(fields.flags) }) }, found.fields);
}

/** Takes back a user whose invite could not be made whole, and says how that ended. */
async function takenBack({ client, withdraw }: Workplace, username: string, token: string): Promise<string> {
  try {
    await client.validateInvite({ token });
    await client.deleteUser({ username });
  } catch (error) {
    const isOver = error instanceof KmsError && ['unauthenticated', 'not-found'].includes(error.code);
    if (!isOver) return 'and the user is left: the next run invites them again';
    await withdraw();
    return 'since somebody else has invited or removed the user meanwhile';
  }
  await withdraw();
  return 'so the user was removed again';
}

export const userKind: Kind = {
  name: 'user',
  noun: ['user', 'users'],
  listFlag: 'user.read',
  nameKey: userKey,
  references: () => [],
  async list({ client }) {
    const found: Found[] = [];
    for await (const user of items(client.listUsers, { limit: 10_000 })) found.push(foundOf(user));
    return found;
  },
  async find({ client }, name) {
    const user = await ifThere(client.getUser({ username: name }));
    return user && foundOf(user);
  },
  /** The change that makes it whole was asked for once its link was kept. */
  async detail(desk, found) {
    if (!found.isUnfinished) return found;
    const isKept = (await desk.asked()).some(
      ({ operation, object }) => operation === 'updateUser' && object?.id === found.id,
    );
    return { ...found, ...(isKept && { isKept }) };
  },
  differences: ({ fields }, found) => differences(fields, found),
  isHalfDone: (_wanted, found) => found.isUnfinished === true && !found.isKept,
  problems({ fields }, found, _changes, around) {
    const missing = ['email', 'firstName', 'lastName'].filter((field) => fields[field] === undefined);
    if (!found && missing.length > 0) {
      return [{ path: ['name'], message: `a new user needs ${missing.join(', ')}` }];
    }
    const email = typeof fields.email === 'string' ? userKey(fields.email) : undefined;
    const others = around.found('user').filter(({ id }) => id !== found?.id && !around.leaving.has(id));
    const holder = others.find((other) => email !== undefined && addressesOf(other).includes(email));
    if (!holder) return [];
    const stays = around.kept.find(({ kind, name }) => kind === 'user' && name === holder.name);
    const why = stays ? `, and stays: ${stays.why}` : ': a run before this one can free it';
    return [{ path: ['email'], message: `the user ${holder.name} has this address${why}` }];
  },
  needsRoomOf,
  flagsFor(wanted, found) {
    const held = grantedIn(found?.fields.flags);
    if (!wanted) return ['user.delete', ...held];
    const isInvited = found && (!found.isUnfinished || found.isKept);
    const actions = isInvited ? ['user.update'] : ['user.invite', 'user.update'];
    return [...actions, ...held, ...grantedIn(wanted.fields.flags)];
  },
  secrets: (_wanted, found) => (found && (!found.isUnfinished || found.isKept) ? [] : ['invite']),
  create,
  async update({ client }, { fields }, found, differences) {
    const changed = new Set(differences.map(({ field }) => field));
    const change = Object.fromEntries(Object.entries(fields).filter(([field]) => changed.has(field)));
    if (changed.has('props')) change.props = keepingMark(fields.props, found);
    await client.updateUser({ username: found.name, ...change });
  },
  async remove({ client }, { id }) {
    await client.deleteUser({ username: id, id: true });
  },
  async keptBecause(desk, found, after) {
    const { caller, client } = desk;
    if (found.id === caller) return 'it is the user that this runs as';
    const rule = found.isUnfinished ? undefined : await ruleWithout(desk, found, after);
    if (rule !== undefined) return `the approval rule ${rule} would have too few approvers without it`;
    const { leaving } = after;
    const { keys = [] } = (await ifThere(client.getUser({ username: found.name }))) ?? {};
    const staying = keys.filter((id) => !leaving.has(id)).length;
    return staying === 0
      ? undefined
      : `it owns ${staying === 1 ? 'an API key' : `${staying} API keys`} that would end with it`;
  },
  exported: ({ fields }) => withoutDefaults(fields, { flags: {}, props: {} }),
};
