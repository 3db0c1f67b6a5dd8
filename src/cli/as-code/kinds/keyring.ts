// Keyrings in configuration files. Their public key is given, so that no private key is ever made by the appliance.
import type { KeyRing, KeyRingConfig } from '../../../api/keyrings.ts';
import type { InputOf } from '../../../client/client.ts';
import { items } from '../../../client/pages.ts';
import { kemOfPublicKey, publicKeySpki } from '../../../client/ring-keys.ts';
import { flagName } from '../../../model/flags.ts';
import { isJsonObject, type JsonObject } from '../../../model/json.ts';
import { differing, differingWithin, grantedIn, present, withoutDefaults } from '../differing.ts';
import type { Difference, Found, Kind, Problem, Restorable, Wanted } from '../kind.ts';
import { keepingMark, marked, unmarked } from '../mark.ts';
import { ifThere } from './account.ts';

function foundOf({ id, displayName: name, kem, publicKey, props }: KeyRing, config?: KeyRingConfig): Found {
  const { props: own, ...mark } = unmarked(props);
  const { algos, rotateAfter, offlineDecrypt } = config ?? {};
  const detail = config && { keyProps: config.key.props, config: { algos, rotateAfter, offlineDecrypt } };
  return { id, name, fields: { publicKey, kem, props: own, ...detail }, ...mark };
}

/** The form in which names compare, and in which flags and paths have them. */
function nameKey(name: string): string {
  return name.toLowerCase();
}

/** The text of a public key as the appliance shows it: base64 of SPKI DER. */
function canonicalKey(text: unknown): unknown {
  const spki = typeof text === 'string' ? publicKeySpki(text) : undefined;
  return spki ? Buffer.from(spki).toString('base64') : text;
}

function differences({ fields }: Wanted, found: Found): Difference[] {
  const { config, publicKey, ...rest } = fields;
  const key = publicKey === undefined ? {} : { publicKey: canonicalKey(publicKey) };
  const inConfig = config === undefined ? [] : differingWithin('config', config, found.fields.config);
  return [...differing({ ...key, ...rest }, found.fields), ...inConfig];
}

function problems({ fields: { publicKey, kem } }: Wanted, found: Found | undefined, changes: readonly Difference[]) {
  const wrong: Problem[] = [];
  const own = typeof publicKey === 'string' ? kemOfPublicKey(publicKey) : undefined;
  const forms = 'an X25519 or X-Wing public key: PEM, or base64 of SPKI DER or of the bytes';
  if (publicKey !== undefined && !own) wrong.push({ path: ['publicKey'], message: `expected ${forms}` });
  if (publicKey === undefined && !found) {
    wrong.push({ path: ['name'], message: 'a new keyring needs its publicKey: a private key is never made here' });
  }
  if (own && kem !== undefined && kem !== own)
    wrong.push({ path: ['kem'], message: `expected ${own}, as the publicKey is` });
  const isKemAlone = !own && changes.some(({ field }) => field === 'kem');
  if (isKemAlone) wrong.push({ path: ['kem'], message: 'changes with the publicKey alone: give a key of that kind' });
  return wrong;
}

/** The part of a configuration that a change replaces. */
function configChange(
  { fields }: Wanted,
  changes: readonly Difference[],
  found?: Found,
): InputOf<'putConfig'>['config'] {
  const changed = new Set(changes.map(({ field }) => field.split('.')[0] ?? field));
  const named: JsonObject = isJsonObject(fields.config) && changed.has('config') ? fields.config : {};
  const isKeyChanged = found !== undefined && changed.has('publicKey');
  return {
    ...named,
    ...(changed.has('props') && found && { props: keepingMark(fields.props, found) }),
    ...(changed.has('keyProps') && found && { key: { props: { ...Object(fields.keyProps) } } }),
    ...(isKeyChanged && { publicKey: String(fields.publicKey), replaces: String(found.fields.publicKey) }),
  };
}

const defaults = {
  props: {},
  keyProps: {},
  config: { algos: { aes256: { maxEncryptCount: 2 ** 32 } }, rotateAfter: null, offlineDecrypt: false },
};

export const keyringKind: Kind = {
  name: 'keyring',
  noun: ['keyring', 'keyrings'],
  listFlag: 'keyring.list',
  nameKey,
  references: () => [],
  async list({ client }) {
    const found: Found[] = [];
    for await (const ring of items(client.listKeyrings, { limit: 10_000 })) found.push(foundOf(ring));
    return found;
  },
  async find({ client }, name) {
    const answer = await ifThere(client.getKeyring({ ringname: nameKey(name), config: true }));
    return answer && foundOf(answer.ring, answer.config);
  },
  async detail({ client }, found, fields) {
    const isNeeded = fields === 'all' || fields.config !== undefined || fields.keyProps !== undefined;
    if (!isNeeded || found.fields.config !== undefined) return found;
    const { ring, config } = await client.getKeyring({ ringname: nameKey(found.name), config: true });
    return foundOf(ring, config);
  },
  differences,
  problems,
  flagsFor(wanted, found) {
    if (!found)
      return ['keyring.create', ...(wanted?.fields.config ? [flagName('keyring.config', nameKey(wanted.name))] : [])];
    return [flagName(wanted ? 'keyring.config' : 'keyring.delete', nameKey(found.name))];
  },
  secrets: () => [],
  async restorable({ client }) {
    const gone: Restorable[] = [];
    for await (const ring of items(client.listKeyrings, { limit: 10_000, deleted: 'true' })) {
      const { id, name, deletedAt, restorableUntil = '' } = ring;
      if (deletedAt !== undefined) gone.push({ name, command: `kms keyring restore ${id}`, until: restorableUntil });
    }
    return gone;
  },
  laterFields: ['config'],
  async create({ client, managedBy }, wanted) {
    const { publicKey, props, keyProps, config } = wanted.fields;
    await client.createKeyring({
      name: wanted.name,
      publicKey: String(publicKey),
      props: marked(props, managedBy),
      ...present({ keyProps: isJsonObject(keyProps) ? keyProps : undefined }),
    });
    if (isJsonObject(config)) await client.putConfig({ ringname: nameKey(wanted.name), config });
  },
  async update({ client }, wanted, found, changes) {
    await client.putConfig({ ringname: nameKey(found.name), config: configChange(wanted, changes, found) });
  },
  async remove({ client }, { name }) {
    await client.deleteKeyring({ name: nameKey(name) });
  },
  async keptBecause({ client, caller }, found, { leaving, wanted }) {
    const name = nameKey(found.name);
    const keys = wanted.filter(({ kind }) => kind === 'apikey');
    const uses = ({ flags, active }: JsonObject): boolean =>
      active !== false && grantedIn(flags).some((flag) => flag.startsWith(`keyring.${name}.`));
    const own = keys.find(({ fields }) => uses(fields));
    if (own) return `the API key ${own.name} uses it`;
    const given = new Map(keys.map((key) => [key.name, key.fields]));
    for await (const key of items(client.searchKeyringApiKeys, { keyringname: name, limit: 1000 })) {
      const { active, flags } = given.get(key.name) ?? {};
      const isLeft = leaving.has(key.keyid) || flags !== undefined || active === false;
      if (key.active && key.keyid !== caller && !isLeft) return `the API key ${key.name || key.keyid} uses it`;
    }
    return undefined;
  },
  exported: ({ fields }) => withoutDefaults(fields, defaults),
};
