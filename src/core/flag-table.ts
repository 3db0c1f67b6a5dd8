// The closed table of permission flags: what each resource's operations are, and which of them concern one ring.

/** Operations on one ring: the flag has the ring's name between resource and operation. */
export const ringOperations = {
  keyring: ['read', 'encrypt', 'decrypt', 'rotate', 'config', 'delete'],
  asym: ['read', 'rotate'],
} as const;

/** Operations that concern no one ring. */
export const plainOperations = {
  keyring: ['create', 'list'],
  asym: ['create'],
  asset: ['read', 'search', 'delete'],
  user: ['read', 'create', 'update', 'delete', 'invite'],
  account: ['read', 'create', 'update', 'delete'],
  apikey: ['read', 'create', 'update', 'delete', 'validate'],
  activity: ['read'],
  system: ['metrics', 'backup'],
} as const;

/** Stands for a ring's name in messages and descriptions. */
export const ringPlaceholder = '<ringname>';

function actionsOf(table: Readonly<Record<string, readonly string[]>>): string[] {
  return Object.entries(table).flatMap(([resource, operations]) => operations.map((name) => `${resource}.${name}`));
}

/** `keyring.encrypt` and the like: actions whose flag names a ring. */
export const ringActions: ReadonlySet<string> = new Set(actionsOf(ringOperations));
export const plainActions: ReadonlySet<string> = new Set(actionsOf(plainOperations));

/** Every flag of the table, with the placeholder for the ring's name. */
export const knownFlags: readonly string[] = [
  '*',
  ...plainActions,
  ...[...ringActions].map((action) => action.replace('.', `.${ringPlaceholder}.`)),
];

/** Whether the table, with its wildcards, has this flag; programs may keep flags of their own, which nothing here looks at. */
export function isKnownFlag(name: string): boolean {
  const flag = name.toLowerCase();
  if (flag === '*' || plainActions.has(flag)) return true;
  const first = flag.indexOf('.');
  const last = flag.lastIndexOf('.');
  if (first < 0) return false;
  const resource = flag.slice(0, first);
  const operation = flag.slice(last + 1);
  if (first === last) return operation === '*' && Object.hasOwn(plainOperations, resource);
  return Object.hasOwn(ringOperations, resource) && (operation === '*' || ringActions.has(`${resource}.${operation}`));
}
