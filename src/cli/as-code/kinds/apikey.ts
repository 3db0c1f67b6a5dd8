// API keys in configuration files, with their flags and proofs. A key with a secret is made switched off, and becomes
// active once its secrets are kept: a run that is cut off leaves no live key whose secret is lost.
import type { SafeApiKey } from '../../../api/apikeys.ts';
import type { Proof } from '../../../api/proofs.ts';
import type { AnswerTo, InputOf } from '../../../client/client.ts';
import { items } from '../../../client/pages.ts';
import { KmsError } from '../../../errors.ts';
import { canonicalBlock } from '../../../model/addresses.ts';
import type { JsonObject } from '../../../model/json.ts';
import { differing, grantedIn, plainFlags, present, withoutDefaults } from '../differing.ts';
import type { Desk, Difference, Found, Kind, Problem, Wanted, Workplace } from '../kind.ts';
import { keepingMark, marked, unmarked } from '../mark.ts';
import { exportedProof, proofChanges, proofLabel, proofProblems, proofsIn, proofText } from '../proof-matching.ts';

interface FoundKey extends Found {
  /** Read only in `detail`. */
  readonly proofs?: readonly Proof[];
}

function foundOf(key: SafeApiKey, uids: ReadonlyMap<string, string>, proofs?: readonly Proof[]): FoundKey {
  const { props, ...mark } = unmarked(key.props);
  const { accountId } = key.references;
  const fields = {
    accountId: uids.get(accountId) ?? accountId,
    flags: plainFlags(key.flags),
    props,
    active: key.active,
    expiresAt: key.expiresAt,
    allowedAddresses: [...key.allowedAddresses].sort(),
    ...(proofs && {
      secret: proofs.some(({ kind }) => kind === 'secret'),
      proofs: proofs.filter(({ kind }) => kind !== 'secret').map(exportedProof),
    }),
  };
  return { id: key.keyid, name: key.name, fields, ...(proofs && { proofs }), ...mark };
}

/** The uids of accounts by their ids; empty for a caller who may not see them. */
async function uidsAt(desk: Desk): Promise<ReadonlyMap<string, string>> {
  const accounts = await desk.list('account').catch((error) => {
    if (error instanceof KmsError && error.code === 'forbidden') return [];
    throw error;
  });
  return new Map(accounts.map(({ id, name }) => [id, name]));
}

function canonicalAddresses(addresses: unknown): readonly string[] {
  const texts = Array.isArray(addresses) ? addresses.map(String) : [];
  return [...new Set(texts.map((text) => canonicalBlock(text) ?? text))].sort();
}

function differences({ fields }: Wanted, found: FoundKey): Difference[] {
  const { flags, allowedAddresses, proofs, accountId, ...rest } = fields;
  // An account whose uid the caller cannot see is compared with none.
  const isSeen = !/^acct_/.test(String(found.fields.accountId)) || accountId === found.fields.accountId;
  const given = {
    ...(accountId !== undefined && isSeen && { accountId }),
    ...rest,
    ...(flags !== undefined && { flags: plainFlags(flags) }),
    ...(allowedAddresses !== undefined && { allowedAddresses: canonicalAddresses(allowedAddresses) }),
  };
  return [...differing(given, found.fields), ...(proofs === undefined ? [] : proofDifferences(fields, found))];
}

function proofDifferences(fields: JsonObject, found: FoundKey): Difference[] {
  const { proofs = [] } = found;
  const { added, switched, removed } = changesOf(fields, proofs);
  const words = [
    ...added.map((proof) => `+ ${proofText(proof)}`),
    ...switched.map(({ proof, active }) => `~ ${proofText({ ...proof })}: switched ${active ? 'on' : 'off'}`),
    ...removed.map((proof) => `- ${proofText({ ...proof })}`),
  ];
  if (words.length === 0) return [];
  return [{ field: 'proofs', before: found.fields.proofs, after: fields.proofs, words }];
}

/** Proofs that no appliance would take are told as problems: they count as added here. */
function changesOf(fields: JsonObject, proofs: readonly Proof[]): ReturnType<typeof proofChanges> {
  try {
    return proofChanges(proofsIn(fields), proofs);
  } catch (error) {
    if (!(error instanceof KmsError) || error.code !== 'invalid') throw error;
    return { added: proofsIn(fields), switched: [], removed: [] };
  }
}

function problems({ fields }: Wanted, found: FoundKey | undefined): Problem[] {
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
  return [...wrong, ...proofProblems(proofs, changesOf(fields, found?.proofs ?? []).added)];
}

function secrets({ fields }: Wanted, found: FoundKey | undefined): string[] {
  const isSecretNew = found ? fields.secret === true && found.fields.secret === false : fields.secret !== false;
  const added = changesOf(fields, found?.proofs ?? []).added;
  return [...(isSecretNew ? ['apikey'] : []), ...added.flatMap((proof) => proofLabel(proof) ?? [])];
}

/** Adds a proof and keeps its secret; if that fails, the proof is removed again. Resolves to its id. */
export async function addProof(desk: Workplace, keyid: string, proof: JsonObject): Promise<string> {
  const { fingerprint: _, ...fields } = proof;
  // Cast: the schema has checked the fields.
  const made = await desk.client.addProof({ keyid, ...fields } as InputOf<'addProof'>);
  const label = made.kind === 'secret' ? 'apikey' : proofLabel(proof);
  if (label === undefined) return made.id;
  try {
    await desk.deliver({ label, text: secretText(made) });
    return made.id;
  } catch (cause) {
    await desk.client.removeProof({ keyid, proof: made.id });
    throw lost(`the secret of the proof ${proofText(proof)} could not be kept, so the proof was removed again`, cause);
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

async function create(desk: Workplace, wanted: Wanted): Promise<void> {
  const { client, managedBy } = desk;
  const { name, fields } = wanted;
  const { proofs: _, active = true, props, secret, ...given } = fields;
  const isLater = secrets(wanted, undefined).length > 0;
  // Cast: the schema has checked the fields.
  const key = await client.createApiKey({
    ...given,
    ...present({ secret: secret === false ? false : undefined }),
    name,
    uid: true,
    unique: true,
    active: active === true && !isLater,
    props: marked(props, managedBy, !isLater),
  } as InputOf<'createApiKey'>);
  try {
    if (secret !== false) await desk.deliver({ label: 'apikey', text: `${key.key}\n` });
    for (const proof of proofsIn(fields)) await addProof(desk, key.keyid, proof);
    const whole = { op: 'replace', active: active === true, props: marked(props, managedBy) } as const;
    if (isLater) await client.updateApiKey({ apikeyid: key.keyid, ...whole });
  } catch (cause) {
    const isGone = await client.deleteApiKeyById({ keyid: key.keyid }).then(
      () => true,
      () => false,
    );
    if (isGone) await desk.withdraw();
    const left = isGone ? 'so the API key was removed again' : `and the API key ${key.keyid} is left switched off`;
    throw lost(`it could not be made whole, ${left}`, cause);
  }
}

async function update(
  desk: Workplace,
  { fields }: Wanted,
  found: FoundKey,
  changes: readonly Difference[],
): Promise<void> {
  const { client } = desk;
  const changed = new Set(changes.map(({ field }) => field));
  const plain = ['flags', 'active', 'expiresAt', 'allowedAddresses'].filter((field) => changed.has(field));
  const given = Object.fromEntries(plain.map((field) => [field, fields[field]]));
  if (changed.has('props')) given.props = keepingMark(fields.props, found);
  if (changed.has('accountId')) {
    const account = await client.getAccount({ id: String(fields.accountId), uid: true });
    given.references = { accountId: account.id };
  }
  if (Object.keys(given).length > 0) {
    // Cast: the schema has checked the fields.
    await client.updateApiKey({ apikeyid: found.id, op: 'replace', ...given } as InputOf<'updateApiKey'>);
  }
  // The new comes before the old goes, so that a program can always log in.
  if (changed.has('secret') && fields.secret === true) await addProof(desk, found.id, { kind: 'secret' });
  const proofs = changed.has('proofs') ? changesOf(fields, found.proofs ?? []) : undefined;
  for (const proof of proofs?.added ?? []) await addProof(desk, found.id, proof);
  for (const { proof, active } of proofs?.switched ?? []) {
    await client.updateProof({ keyid: found.id, proof: proof.id, active });
  }
  for (const { id } of proofs?.removed ?? []) await client.removeProof({ keyid: found.id, proof: id });
  if (changed.has('secret') && fields.secret === false) await client.removeProof({ keyid: found.id, proof: 'secret' });
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
    if (fields !== 'all' && fields.proofs === undefined && fields.secret === undefined) return found;
    const { proofs, ...key } = await desk.client.getApiKey({ apikeyid: found.id, proofs: true });
    return foundOf(key, await uidsAt(desk), proofs);
  },
  differences,
  problems: (wanted, found) => problems(wanted, found),
  flagsFor(wanted, found) {
    const held = grantedIn(found?.fields.flags);
    if (!wanted) return ['apikey.delete', ...held];
    // A proof hands out all flags of the key.
    const proofs = proofsIn(wanted.fields).length > 0 || secrets(wanted, found).length > 0;
    const action = found ? ['apikey.update'] : ['apikey.create', ...(proofs ? ['apikey.update'] : [])];
    return [...action, ...held, ...grantedIn(wanted.fields.flags)];
  },
  secrets,
  create,
  update,
  async remove({ client }, { id }) {
    await client.deleteApiKeyById({ keyid: id });
  },
  async keptBecause({ caller }, { id }) {
    return id === caller ? 'it is the API key that this runs with' : undefined;
  },
  exported(found: FoundKey) {
    if (found.name === '') return undefined;
    return withoutDefaults(found.fields, defaults);
  },
};
