// API keys in configuration files, with their flags and proofs. Everything that brings a secret is made switched off,
// and becomes active once the secret is kept: a run that is cut off leaves nothing live whose secret is lost, but a
// mark or a switch by which the next one sees what to make again.
import type { SafeApiKey } from '../../../api/apikeys.ts';
import type { ApprovalRequest } from '../../../api/approvals.ts';
import type { Proof } from '../../../api/proofs.ts';
import type { AnswerTo, InputOf } from '../../../client/client.ts';
import { items } from '../../../client/pages.ts';
import { KmsError } from '../../../errors.ts';
import { canonicalBlock } from '../../../model/addresses.ts';
import type { JsonObject } from '../../../model/json.ts';
import { mostProofs } from '../../../model/proof-limits.ts';
import { sharedProofProblems } from '../certificate-holders.ts';
import { differing, grantedIn, plainFlags, present, withoutDefaults } from '../differing.ts';
import type { Around, Desk, Difference, Found, Kind, Problem, Wanted, Workplace } from '../kind.ts';
import { keepingMark, marked, unmarked } from '../mark.ts';
import { changeProofs } from '../proof-changes.ts';
import {
  changeWords,
  endedProofs,
  exportedProof,
  isSameButName,
  type ProofChanges,
  proofChanges,
  proofLabel,
  proofProblems,
  proofsIn,
  proofText,
} from '../proof-matching.ts';
import { waitsAs } from '../waiting.ts';
import { ifAllowed, ifThere } from './account.ts';

interface FoundKey extends Found {
  /** Read only in `detail`, as what follows. */
  readonly proofs?: readonly Proof[];
  /** Ids of proofs that wait for being switched on: their secrets are kept. */
  readonly keptProofs?: readonly string[];
  /** The caller cannot see the uid of its account: the id stands for it. */
  readonly isAccountHidden?: true;
  /** A new secret is kept, and only the mark says still that it is being made. */
  readonly isSecretKept?: true;
}

/** Facts about a key that is not whole: each open request of the caller was made after a secret was kept. */
function keptIn(asked: readonly ApprovalRequest[], keyid: string, mark: string | undefined) {
  const own = asked.filter(
    ({ operation, object }) => object?.id === keyid && ['updateApiKey', 'addProof', 'updateProof'].includes(operation),
  );
  const switches = own.filter(({ operation, shown }) => operation === 'updateProof' && shown.body?.active === true);
  const isMarkedWhole = own.some(
    ({ operation, shown }) => operation === 'updateApiKey' && Object(shown.body?.props).managedBy === mark,
  );
  return { own, isMarkedWhole, keptProofs: switches.map(({ shown }) => String(shown.parameters.proof)) };
}

function foundOf(
  key: SafeApiKey,
  uids: ReadonlyMap<string, string>,
  proofs?: readonly Proof[],
  asked: readonly ApprovalRequest[] = [],
): FoundKey {
  const { props, lacks, ...mark } = unmarked(key.props);
  // A key that was ever live is whole, whatever its properties say.
  const isUnfinished = lacks === 'all' && !key.active && key.lastUsedAt === null;
  const { accountId } = key.references;
  const uid = uids.get(accountId);
  const fields = {
    accountId: uid ?? accountId,
    flags: plainFlags(key.flags),
    props,
    active: key.active,
    expiresAt: key.expiresAt,
    allowedAddresses: [...key.allowedAddresses].sort(),
    ...(proofs && {
      // Null: it may have one that was lost.
      secret: lacks === 'secret' ? null : proofs.some(({ kind }) => kind === 'secret'),
      proofs: proofs.filter(({ kind }) => kind !== 'secret').map(exportedProof),
    }),
  };
  const { own, isMarkedWhole, keptProofs } = keptIn(asked, key.keyid, mark.managedBy);
  return {
    id: key.keyid,
    name: key.name,
    fields,
    ...(uid === undefined && { isAccountHidden: true }),
    ...(proofs && { proofs, keptProofs }),
    ...mark,
    ...(isUnfinished && { isUnfinished }),
    ...(isUnfinished && own.length > 0 && { isKept: true }),
    ...(lacks === 'secret' && isMarkedWhole && { isSecretKept: true }),
  };
}

/** Whether what is unfinished is gone on with. A secret that it has and should not have is made again without. */
function isResumed({ fields }: Wanted, found: FoundKey): boolean {
  return found.isKept === true && (fields.secret !== false) === found.fields.secret;
}

/** The uids of accounts by their ids; empty for a caller who may not see them. */
async function uidsAt(desk: Desk): Promise<ReadonlyMap<string, string>> {
  const accounts = await ifAllowed(desk.list('account'));
  return new Map((accounts === 'unseen' ? [] : accounts).map(({ id, name }) => [id, name]));
}

function canonicalAddresses(addresses: unknown): readonly string[] {
  const texts = Array.isArray(addresses) ? addresses.map(String) : [];
  return [...new Set(texts.map((text) => canonicalBlock(text) ?? text))].sort();
}

function differences({ fields }: Wanted, found: FoundKey): Difference[] {
  const { flags, allowedAddresses, proofs, accountId, ...rest } = fields;
  const given = {
    ...(accountId !== undefined && !found.isAccountHidden && { accountId }),
    ...rest,
    ...(flags !== undefined && { flags: plainFlags(flags) }),
    ...(allowedAddresses !== undefined && { allowedAddresses: canonicalAddresses(allowedAddresses) }),
  };
  return [...differing(given, found.fields), ...(proofs === undefined ? [] : proofDifferences(fields, found))];
}

function proofDifferences(fields: JsonObject, found: FoundKey): Difference[] {
  const words = changeWords(changesOf(fields, found));
  if (words.length === 0) return [];
  return [{ field: 'proofs', before: found.fields.proofs, after: fields.proofs, words }];
}

/** Proofs that no appliance would take are told as problems: they count as added here. */
function changesOf(fields: JsonObject, { proofs = [], keptProofs = [] }: Partial<FoundKey> = {}): ProofChanges {
  try {
    const isSecretWanted = fields.secret === undefined ? undefined : fields.secret === true;
    return proofChanges(proofsIn(fields), proofs, keptProofs, isSecretWanted);
  } catch (error) {
    if (!(error instanceof KmsError) || error.code !== 'invalid') throw error;
    return allNew(fields);
  }
}

function allNew(fields: JsonObject): ProofChanges {
  return { added: proofsIn(fields), again: [], renewed: [], switched: [], removed: [], first: [], room: new Map() };
}

/** Whether each proof that is there, or is still missing, is part of the planned change; a secret may be lost. */
function isBetween({ field, words = [] }: Difference, { fields }: Wanted, found: FoundKey): boolean {
  if (field === 'secret') return found.fields.secret === null;
  if (field !== 'proofs') return false;
  const changes = changesOf(fields, found);
  const isRemnant = ({ kind, name, active, lastUsedAt }: Proof): boolean =>
    !active && lastUsedAt === null && changes.again.some((each) => each.kind === kind && (each.name ?? '') === name);
  const left = changeWords({
    ...changes,
    switched: changes.switched.filter(({ proof }) => !found.keptProofs?.includes(proof.id)),
    removed: changes.removed.filter((proof) => !isRemnant(proof)),
    first: [],
    room: new Map(),
  });
  return left.every((line) => words.includes(line));
}

function problems(wanted: Wanted, found: FoundKey | undefined, around: Around): Problem[] {
  const { fields } = wanted;
  const wrong: Problem[] = [];
  if (!found && fields.accountId === undefined) {
    wrong.push({ path: ['name'], message: 'a new API key needs an accountId: the uid of its account' });
  }
  const { allowedAddresses, expiresAt } = fields;
  for (const [at, text] of (Array.isArray(allowedAddresses) ? allowedAddresses : []).entries()) {
    const expected = 'expected an IPv4 or IPv6 address, or a block of them such as 192.0.2.0/24';
    if (canonicalBlock(String(text)) === undefined) wrong.push({ path: ['allowedAddresses', at], message: expected });
  }
  if (!found && typeof expiresAt === 'number' && expiresAt <= Date.now()) {
    wrong.push({ path: ['expiresAt'], message: 'expected a time to come: the key would never work' });
  }
  const proofs = proofsIn(fields);
  const whole = { secret: true, ...found?.fields, ...fields };
  if (proofsIn(whole).length === mostProofs && whole.secret !== false) {
    wrong.push({ path: ['proofs'], message: `an API key has at most ${mostProofs} proofs, its secret included` });
  }
  return [...wrong, ...proofProblems(proofs, changesOf(fields, found).added), ...sharedProofProblems(wanted, around)];
}

function notes({ fields }: Wanted, found: FoundKey): string[] {
  const isUnknown = fields.accountId !== undefined && found.isAccountHidden;
  const ended = fields.proofs === undefined ? [] : endedProofs(changesOf(fields, found), found.proofs ?? []);
  return [...(isUnknown ? ['its account cannot be seen, and is left as it is'] : []), ...ended];
}

function secrets(wanted: Wanted, there: FoundKey | undefined): string[] {
  const { fields } = wanted;
  const found = there?.isUnfinished && !isResumed(wanted, there) ? undefined : there;
  const isLacking = found && !found.isSecretKept && found.fields.secret !== true;
  const isSecretNew = found ? fields.secret === true && isLacking : fields.secret !== false;
  const { added } = changesOf(fields, found);
  return [...(isSecretNew ? ['apikey'] : []), ...added.flatMap((proof) => proofLabel(proof) ?? [])];
}

/**
 * Adds a proof and keeps its secret, and switches it on only then; if that fails, the proof is removed again, unless
 * only the switch waits for approval. Resolves to its id.
 */
export async function addProof(desk: Workplace, keyid: string, proof: JsonObject): Promise<string> {
  const { client } = desk;
  const { fingerprint: _, ...fields } = proof;
  const isSecret = proof.kind === 'secret';
  const label = isSecret ? 'apikey' : proofLabel(proof);
  const isLater = desk.goesOn && label !== undefined && !isSecret && proof.active !== false;
  // Cast: the schema has checked the fields.
  const input = { keyid, ...fields, ...(isLater && { active: false }) } as InputOf<'addProof'>;
  const made = await client.addProof(input);
  if (label === undefined) return made.id;
  try {
    await desk.deliver({ label, text: secretText(made) });
    if (isLater) await client.updateProof({ keyid, proof: made.id, active: true });
    return made.id;
  } catch (cause) {
    if (desk.goesOn && waitsAs(cause).length > 0) throw cause;
    const left = await goneAfter(client.removeProof({ keyid, proof: made.id }), `the proof ${made.id}`);
    if (left.isGone) await desk.withdraw(label);
    throw lost(`the proof ${proofText(proof)} could not be made whole, ${left.words}`, cause);
  }
}

/** Waits for the removal of something that could not be made whole, and says how it ended. */
async function goneAfter(removal: Promise<unknown>, what: string): Promise<{ isGone: boolean; words: string }> {
  try {
    await removal;
    return { isGone: true, words: `so ${what} was removed again` };
  } catch (error) {
    const isGone = error instanceof KmsError && error.code === 'not-found';
    return { isGone, words: isGone ? `and somebody else has removed ${what}` : `and ${what} is left: look at it` };
  }
}

/** An API key on a line, an access key as variables of the environment, or a certificate with its private key. */
function secretText({
  key,
  accessKeyId,
  secretAccessKey,
  certificate,
  privateKey,
  caCertificate,
}: AnswerTo<'addProof'>) {
  if (key !== undefined) return `${key}\n`;
  if (secretAccessKey === undefined) return [privateKey, certificate, caCertificate].join('');
  return `AWS_ACCESS_KEY_ID=${accessKeyId}\nAWS_SECRET_ACCESS_KEY=${secretAccessKey}\n`;
}

function lost(what: string, cause: unknown): KmsError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new KmsError('refused', `${what}: ${why}`, { cause });
}

async function create(desk: Workplace, wanted: Wanted, unfinished?: FoundKey): Promise<void> {
  const { client, managedBy } = desk;
  if (unfinished && isResumed(wanted, unfinished)) return finish(desk, wanted, unfinished);
  if (unfinished) await ifThere(client.deleteApiKeyById({ keyid: unfinished.id }));
  const { name, fields } = wanted;
  const { proofs, active = true, props, secret, ...given } = fields;
  const isLater = desk.goesOn && secrets(wanted, undefined).length > 0;
  // Cast: the schema has checked the fields.
  const key = await client.createApiKey({
    ...given,
    ...present({ secret: secret === false ? false : undefined }),
    name,
    uid: true,
    unique: true,
    active: active === true && !isLater,
    props: marked(props, managedBy, isLater ? 'all' : undefined),
  } as InputOf<'createApiKey'>);
  const { keyid } = key;
  try {
    if (secret !== false) await desk.deliver({ label: 'apikey', text: `${key.key}\n` });
    await changeProofs(proofActs(desk, keyid), allNew(fields));
    if (isLater) await client.updateApiKey({ apikeyid: keyid, ...wholeOf(desk, fields) });
  } catch (cause) {
    // Its secret is kept: the next run goes on with this key.
    if (desk.goesOn && waitsAs(cause).length > 0) throw cause;
    const left = await goneAfter(client.deleteApiKeyById({ keyid }), `the API key ${keyid}`);
    if (left.isGone) await desk.withdraw();
    throw lost(`it could not be made whole, ${left.words}`, cause);
  }
}

/** Switches a new key on, and takes off the mark that it is being made. */
function wholeOf({ managedBy }: Workplace, { active = true, props }: JsonObject) {
  return { op: 'replace', active: active === true, props: marked(props, managedBy) } as const;
}

/** Goes on with a key that is off and has its secret kept; the file may have changed since. */
async function finish(desk: Workplace, wanted: Wanted, found: FoundKey): Promise<void> {
  const { active: _, props: __, secret: ___, proofs = [], ...rest } = wanted.fields;
  const fields = { flags: {}, expiresAt: null, allowedAddresses: [], ...rest };
  const given = await plainChange(desk, fields, differences({ ...wanted, fields }, found));
  await changeProofs(proofActs(desk, found.id), changesOf({ proofs }, found));
  // Cast: the schema has checked the fields.
  const input = { apikeyid: found.id, ...given, ...wholeOf(desk, wanted.fields) } as InputOf<'updateApiKey'>;
  await desk.client.updateApiKey(input);
}

/** The part of a change that is one request. */
async function plainChange(
  { client }: Workplace,
  fields: JsonObject,
  changes: readonly Difference[],
): Promise<JsonObject> {
  const changed = new Set(changes.map(({ field }) => field));
  const plain = ['flags', 'active', 'expiresAt', 'allowedAddresses'].filter((field) => changed.has(field));
  const given = Object.fromEntries(plain.map((field) => [field, fields[field]]));
  if (!changed.has('accountId')) return given;
  const account = await client.getAccount({ id: String(fields.accountId), uid: true });
  return { ...given, references: { accountId: account.id } };
}

async function update(
  desk: Workplace,
  { fields }: Wanted,
  found: FoundKey,
  changes: readonly Difference[],
): Promise<void> {
  const { client } = desk;
  const changed = new Set(changes.map(({ field }) => field));
  const isSecretNew = changed.has('secret') && fields.secret === true;
  // In one request, unless a later run goes on with the secret, or an earlier one has begun it.
  const isMarked = isSecretNew && (desk.goesOn || found.fields.secret === null);
  const plain = await plainChange(desk, fields, changes);
  // A mark brings the properties along.
  const given = changed.has('props') && !isMarked ? { ...plain, props: keepingMark(fields.props, found) } : plain;
  if (Object.keys(given).length > 0) {
    // Cast: the schema has checked the fields.
    await client.updateApiKey({ apikeyid: found.id, op: 'replace', ...given } as InputOf<'updateApiKey'>);
  }
  const acts = proofActs(desk, found.id);
  const addSecret = () => (isMarked ? addMarkedSecret(desk, fields, found) : acts.add({ kind: 'secret' }));
  const ofSecret = isSecretNew ? { addSecret } : { removeSecret: () => removeSecret(desk, fields, found) };
  const ofProofs = changed.has('proofs') ? changesOf(fields, found) : allNew({});
  await changeProofs({ ...acts, ...(changed.has('secret') && ofSecret) }, ofProofs);
}

export function proofActs(desk: Workplace, keyid: string) {
  const { client } = desk;
  return {
    add: (proof: JsonObject) => addProof(desk, keyid, proof),
    turn: ({ id: proof }: Proof, active: boolean) => client.updateProof({ keyid, proof, active }),
    remove: ({ id: proof }: Proof) => client.removeProof({ keyid, proof }),
  };
}

/** The mark says that it is being made: a secret has no switch. */
async function addMarkedSecret(desk: Workplace, fields: JsonObject, found: FoundKey): Promise<void> {
  const { client } = desk;
  const props = fields.props ?? found.fields.props;
  const setProps = (all: JsonObject) => client.updateApiKey({ apikeyid: found.id, op: 'replace', props: all });
  if (!found.isSecretKept) {
    const isBegun = found.fields.secret === null;
    const isThere = found.proofs?.some(({ kind }) => kind === 'secret');
    if (!isBegun) await setProps(marked(props, found.managedBy ?? '', 'secret'));
    if (isBegun && isThere) await ifThere(client.removeProof({ keyid: found.id, proof: 'secret' }));
    try {
      await addProof(desk, found.id, { kind: 'secret' });
    } catch (error) {
      // Another run was faster: that secret is not lost.
      if (error instanceof KmsError && error.code === 'invalid') await setProps(keepingMark(props, found));
      throw error;
    }
  }
  await setProps(keepingMark(props, found));
}

async function removeSecret({ client }: Workplace, fields: JsonObject, found: FoundKey): Promise<void> {
  await ifThere(client.removeProof({ keyid: found.id, proof: 'secret' }));
  if (found.fields.secret !== null) return;
  const props = keepingMark(fields.props ?? found.fields.props, found);
  await client.updateApiKey({ apikeyid: found.id, op: 'replace', props });
}

function flagsFor(wanted: Wanted | undefined, found: FoundKey | undefined): readonly string[] {
  const held = grantedIn(found?.fields.flags);
  if (!wanted) return ['apikey.delete', ...held];
  if (found?.isUnfinished && !isResumed(wanted, found))
    return ['apikey.delete', ...held, ...flagsFor(wanted, undefined)];
  // A proof hands out all flags of the key.
  const proofs = proofsIn(wanted.fields).length > 0 || secrets(wanted, found).length > 0;
  const action = found ? ['apikey.update'] : ['apikey.create', ...(proofs ? ['apikey.update'] : [])];
  return [...action, ...held, ...grantedIn(wanted.fields.flags)];
}

const defaults = {
  flags: {},
  props: {},
  active: true,
  expiresAt: null,
  allowedAddresses: [],
  secret: true,
  proofs: [],
};

export const apiKeyKind: Kind = {
  name: 'apikey',
  noun: ['API key', 'API keys'],
  listFlag: 'apikey.read',
  nameKey: (name) => name,
  references({ fields }) {
    const { accountId } = fields;
    return typeof accountId === 'string' ? [{ kind: 'account', name: accountId, path: ['accountId'] }] : [];
  },
  async list(desk) {
    const uids = await uidsAt(desk);
    const found: Found[] = [];
    for await (const key of items(desk.client.listApiKeys, { limit: 10_000 })) found.push(foundOf(key, uids));
    return found;
  },
  async detail(desk, found, fields) {
    const isNamed = fields === 'all' || fields.proofs !== undefined || fields.secret !== undefined;
    if (!isNamed && !found.isUnfinished) return found;
    const { proofs, ...key } = await desk.client.getApiKey({ apikeyid: found.id, proofs: true });
    const isBegun = unmarked(key.props).lacks !== undefined || proofs?.some(({ active }) => !active);
    return foundOf(key, await uidsAt(desk), proofs, isBegun ? await desk.asked() : []);
  },
  differences,
  problems: (wanted, found, _changes, around) => problems(wanted, found, around),
  notes,
  flagsFor,
  isHalfDone(wanted, found: FoundKey) {
    const { fields } = wanted;
    if (found.isUnfinished) return !isResumed(wanted, found);
    const isSecretThere = found.proofs?.some(({ kind }) => kind === 'secret') === true;
    const isLost = found.fields.secret === null && isSecretThere && !found.isSecretKept;
    const isSecretLost = fields.secret === true && isLost;
    return isSecretLost || changesOf(fields, found).again.length > 0;
  },
  needsRoomOf: ({ fields }, { proofs = [] }: FoundKey) =>
    proofsIn(fields).some((proof) => proofs.some((each) => isSameButName(proof, each))),
  isBetween,
  secrets,
  create,
  update,
  async remove({ client }, { id }) {
    await client.deleteApiKeyById({ keyid: id });
  },
  async keptBecause({ caller }, { id }) {
    return id === caller ? 'it is the API key that this runs with' : undefined;
  },
  exportLacks: ({ isAccountHidden }: FoundKey) =>
    isAccountHidden && 'the account: the permission flag account.read is missing',
  exported({ name, fields: { secret, accountId, ...fields }, isAccountHidden }: FoundKey) {
    const account = isAccountHidden ? {} : { accountId };
    return name === '' ? undefined : withoutDefaults({ ...account, ...fields, secret: secret ?? true }, defaults);
  },
};
