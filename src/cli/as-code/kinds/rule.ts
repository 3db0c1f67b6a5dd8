// Rules of approvals in configuration files. They are made after everything else, so that they do not stop the very run
// that makes them; a change of one needs the approval that the rule itself asks for.
import type { ApprovalRule } from '../../../api/approvals.ts';
import type { InputOf } from '../../../client/client.ts';
import { KmsError } from '../../../errors.ts';
import { actProblem, defaultObjects } from '../../../model/approval-rules.ts';
import { parseFlags } from '../../../model/flags.ts';
import { differing, withoutDefaults } from '../differing.ts';
import type { Desk, Found, Kind, Path, Problem, Wanted } from '../kind.ts';
import { keepingMark, marked, unmarked } from '../mark.ts';
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

function problems({ fields }: Wanted, found: Found | undefined): Problem[] {
  const missing = ['actions', 'approvers'].filter((field) => fields[field] === undefined);
  if (!found && missing.length > 0) return [{ path: ['name'], message: `a new rule needs ${missing.join(' and ')}` }];
  const { approvers, count = 1, expires } = { ...found?.fields, ...fields };
  const { users } = Object(approvers);
  const wrong: Problem[] = [];
  if (users !== undefined && listed(users).length < Number(count)) {
    const path = fields.count === undefined ? ['approvers'] : ['count'];
    wrong.push({
      path,
      message: `${count} approvals are needed, and there are only ${listed(users).length} approvers`,
    });
  }
  for (const [index, action] of (Array.isArray(fields.actions) ? fields.actions : []).entries()) {
    const message = actProblem(String(action));
    if (message !== undefined) wrong.push({ path: ['actions', index], message });
  }
  if (typeof fields.expires === 'number' && fields.expires !== found?.fields.expires && Number(expires) <= Date.now()) {
    wrong.push({ path: ['expires'], message: 'is past' });
  }
  return wrong;
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
  problems,
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
