// Rules of approvals in configuration files. They are made after everything else, so that they do not stop the very run
// that makes them; a change of one needs the approval that the rule itself asks for.
import type { ApprovalRule } from '../../../api/approvals.ts';
import type { InputOf } from '../../../client/client.ts';
import { KmsError } from '../../../errors.ts';
import { actProblem, defaultObjects } from '../../../model/approval-rules.ts';
import { isKnownFlag, likelyFlag, parseFlags } from '../../../model/flags.ts';
import { differing, withoutDefaults } from '../differing.ts';
import type { Around, Desk, Found, Kind, Path, Problem, Wanted } from '../kind.ts';
import { keepingMark, marked, unmarked } from '../mark.ts';
import { ifAllowed } from './account.ts';
import { userKey } from './user.ts';

interface FoundRule extends Found {
  /** Names of the users in it, by their ids. */
  readonly people: Readonly<Record<string, string>>;
}

function foundOf(rule: ApprovalRule): FoundRule {
  const { id, name, actions, objects, approvers, count, selfApproval, mode, window, breakers, expires } = rule;
  const { props, ...mark } = unmarked(rule.props);
  const { users, flag } = approvers;
  const nameOf = (person: { readonly id: string; readonly name: string }) => person.name || person.id;
  const people = Object.fromEntries([...(users ?? []), ...breakers].map((person) => [person.id, nameOf(person)]));
  const namesOf = (list: typeof breakers) => list.map(nameOf).sort();
  return {
    id,
    name,
    fields: {
      actions: actions.toSorted(),
      objects: objects.toSorted(),
      approvers: users ? { users: namesOf(users) } : { flag },
      count,
      selfApproval,
      mode,
      window,
      breakers: namesOf(breakers),
      expires,
      props,
    },
    people,
    ...mark,
  };
}

function listed(given: unknown): readonly string[] {
  return Array.isArray(given) ? [...new Set(given.map(String))] : [];
}

/** Fields in the form in which two rules compare; users may be given by their ids. */
function canonical(fields: Found['fields'], people: FoundRule['people']): Found['fields'] {
  const named = (given: unknown) => [...new Set(listed(given).map((each) => userKey(people[each] ?? each)))].sort();
  const sorted = (given: unknown) => listed(given).toSorted();
  const forms: Readonly<Record<string, (value: unknown) => unknown>> = {
    actions: sorted,
    objects: sorted,
    breakers: named,
    approvers: (given) => {
      const { users, flag } = Object(given);
      return flag === undefined ? { users: named(users) } : { flag: String(flag).toLowerCase() };
    },
  };
  return Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, forms[field]?.(value) ?? value]));
}

function peopleOf(found: Partial<FoundRule>): FoundRule['people'] {
  return found.people ?? {};
}

/** Users that the fields name, with their places. */
function usersIn({ approvers, breakers }: Wanted['fields']): { readonly name: string; readonly path: Path }[] {
  const { users } = Object(approvers);
  const at = (given: unknown, path: Path) => listed(given).map((name, index) => ({ name, path: [...path, index] }));
  return [...at(users, ['approvers', 'users']), ...at(breakers, ['breakers'])];
}

function problems({ fields }: Wanted, found: Found | undefined, around: Around): Problem[] {
  const missing = ['actions', 'approvers'].filter((field) => fields[field] === undefined);
  if (!found && missing.length > 0) return [{ path: ['name'], message: `a new rule needs ${missing.join(' and ')}` }];
  const { approvers, count = 1, expires } = { ...found?.fields, ...fields };
  const { users } = Object(approvers);
  const wrong: Problem[] = [];
  const number = listed(users).length;
  if (users !== undefined && number < Number(count)) {
    const path = fields.count === undefined ? ['approvers'] : ['count'];
    const needed = count === 1 ? '1 approval is needed' : `${count} approvals are needed`;
    const there =
      number === 0 ? 'is no approver' : number === 1 ? 'is only 1 approver' : `are only ${number} approvers`;
    wrong.push({ path, message: `${needed}, and there ${there}` });
  }
  for (const field of ['actions', 'objects']) {
    const isEmpty = Array.isArray(fields[field]) && listed(fields[field]).length === 0;
    if (isEmpty) wrong.push({ path: [field], message: 'expected at least one' });
  }
  for (const [index, action] of listed(fields.actions).entries()) {
    const message = actProblem(action);
    if (message !== undefined) wrong.push({ path: ['actions', index], message });
  }
  if (typeof fields.expires === 'number' && fields.expires !== found?.fields.expires && Number(expires) <= Date.now()) {
    wrong.push({ path: ['expires'], message: 'is past' });
  }
  return [...wrong, ...flagProblems(fields, around)];
}

/** The flag of the approvers, if it is probably a slip, and the one that was meant. */
function slip({ approvers }: Wanted['fields']): { readonly flag: string; readonly meant: string } | undefined {
  const { flag } = Object(approvers);
  const meant = typeof flag === 'string' && !isKnownFlag(flag) ? likelyFlag(flag) : undefined;
  return meant === undefined ? undefined : { flag: flag.toLowerCase(), meant };
}

/** Refuses a flag that is probably a slip: one that somebody has, otherwise than by `*`, is none. */
function flagProblems(fields: Wanted['fields'], around: Around): Problem[] {
  const { flag, meant } = slip(fields) ?? {};
  if (flag === undefined || !around.isListed('user')) return [];
  const isHeld = [...around.found('user'), ...around.wanted('user')].some(({ fields: { flags } }) => {
    const held = parseFlags(Object(flags));
    return !held.covers('*') && held.allows(flag);
  });
  if (isHeld) return [];
  return [{ path: ['approvers', 'flag'], message: `no user has the permission flag ${flag}; did you mean ${meant}?` }];
}

/** A warning if too few can satisfy a rule: it stops what it covers, its own change included. */
export function unmetWarning({ able, count }: Pick<ApprovalRule, 'able' | 'count'>): string | undefined {
  if (able >= count) return undefined;
  const who = able === 1 ? 'only 1 approver' : able === 0 ? 'no approver' : `only ${able} approvers`;
  const need = 'each needs a second factor, and the rule must vouch for them (kms approval rule update --vouch)';
  return `${who} can approve now, and it takes ${count}: ${need}`;
}

/** Warnings of those among the named rules that too few can satisfy, as far as the caller sees them. */
export async function unmetWarnings({ client }: Desk, names: readonly string[]) {
  if (names.length === 0) return [];
  const answer = await ifAllowed(client.listApprovalRules());
  const rules = (answer === 'unseen' ? [] : answer.rules).filter(({ name }) => names.includes(name));
  return rules.flatMap((rule) => {
    const text = unmetWarning(rule);
    return text === undefined ? [] : [{ name: rule.name, text }];
  });
}

/** Rules that the caller sees: those that concern it, or all. */
async function visible({ client }: Desk): Promise<Found[]> {
  const { rules } = await client.listApprovalRules();
  return rules.map(foundOf);
}

/** Throws `forbidden` if there may be rules that the caller does not see. */
function needWhole({ flags }: Desk): void {
  const held = parseFlags(flags);
  if (held.covers(listFlag) || held.covers('approval.rule')) return;
  throw new KmsError('forbidden', `the permission flag ${listFlag} is missing`);
}

const listFlag = 'approval.read';

const defaults = {
  objects: defaultObjects,
  count: 1,
  selfApproval: false,
  mode: 'ask',
  window: 'once',
  breakers: [],
  expires: null,
  props: {},
};

export const ruleKind: Kind = {
  name: 'rule',
  noun: ['approval rule', 'approval rules'],
  listFlag,
  nameKey: (name) => name,
  references: ({ fields }) =>
    usersIn(fields)
      .filter(({ name }) => !/^user_[0-9a-z]{26}$/.test(name))
      .map(({ name, path }) => ({ kind: 'user', name, path })),
  async list(desk) {
    needWhole(desk);
    return visible(desk);
  },
  async find(desk, name) {
    const found = (await visible(desk)).find((rule) => rule.name === name);
    if (!found) needWhole(desk);
    return found;
  },
  differences: ({ fields }, found) =>
    differing(canonical(fields, peopleOf(found)), canonical(found.fields, peopleOf(found))),
  considers: ({ fields }) => (slip(fields) ? ['user'] : []),
  problems: (wanted, found, _changes, around) => problems(wanted, found, around),
  flagsFor: () => ['approval.rule'],
  secrets: () => [],
  async create({ client, managedBy }, { name, fields }) {
    const props = marked(fields.props, managedBy);
    // Cast: the schema has checked the fields, and `problems` that none is missing.
    await client.createApprovalRule({ ...fields, name, props } as InputOf<'createApprovalRule'>);
  },
  async update({ client }, { fields }, found, differences) {
    const changed = new Set(differences.map(({ field }) => field));
    const change = Object.fromEntries(Object.entries(fields).filter(([field]) => changed.has(field)));
    if (changed.has('props')) change.props = keepingMark(fields.props, found);
    await client.updateApprovalRule({ id: found.id, ...change });
  },
  async remove({ client }, { id }) {
    await client.deleteApprovalRule({ id });
  },
  exported: ({ fields }) => withoutDefaults(fields, defaults),
};
