// The resource `kms_apikey_proof`: one proof of an API key, for keys whose proofs are made in several places. The list
// `proofs` of `kms_apikey` is for those made in one.
import { isDeepStrictEqual } from 'node:util';
import type { Proof } from '../../api/proofs.ts';
import { KmsError } from '../../errors.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Workplace } from '../as-code/kind.ts';
import { addProof, proofActs } from '../as-code/kinds/apikey.ts';
import { changeProofs } from '../as-code/proof-changes.ts';
import {
  exportedProof,
  hasEnded,
  isSameButName,
  isSameProof,
  type ProofChanges,
  proofChanges,
  proofLabel,
  proofProblems,
} from '../as-code/proof-matching.ts';
import { type Attribute, type Attributes, fieldOf, valueOfField } from './attributes.ts';
import { keepsSecrets, noKeeper, noSecrets, secretAttributes, secretKeeper } from './kept-secrets.ts';
import type { KindOptions } from './resource.ts';
import type { Instance, Problem, ResourceType } from './service.ts';
import { hasUnknown, mapped, type ObjectValue } from './values.ts';

const own: Attributes = {
  id: { about: 'its id', field: '', type: 'string', origin: 'computed' },
  keyid: { about: 'id of the API key', field: '', type: 'string', origin: 'required', replaces: true },
};

/** `fields` are the attributes of an entry of `proofs`. */
export function proofResource(fields: Attributes, open: KindOptions['open']): ResourceType {
  const proofFields = mapped(fields, asOwn);
  const attributes = { ...own, ...proofFields, ...secretAttributes };

  const wantedOf = (values: ObjectValue): JsonObject =>
    Object.fromEntries(
      Object.entries(proofFields).flatMap(([name, attribute]) => {
        const value = values[name] ?? null;
        return value === null || hasUnknown(value) ? [] : [[attribute.field, fieldOf(attribute, value)]];
      }),
    );

  /** Values of `before` stay as they are, unless the proof trusts something else. */
  function instanceOf(proof: Proof, before: ObjectValue, more: ObjectValue = {}): Instance {
    const shown = exportedProof(proof);
    const wanted = wantedOf(before);
    const isOther = wanted.kind === undefined || changesOf(wanted, proof).added.length > 0;
    const state = {
      ...mapped(attributes, (_, name) => before[name] ?? null),
      ...(isOther && mapped(proofFields, (attribute) => valueOfField(attribute, shown[attribute.field]))),
      id: proof.id,
      active: proof.active,
      ...more,
    };
    return { state, memory: null };
  }

  function newProblems(wanted: JsonObject): readonly Problem[] {
    return proofProblems([wanted], [wanted]).map(({ path, message }) => {
      const [each] = Object.entries(proofFields).find(([, { field }]) => field === path[2]) ?? [];
      return { path: each === undefined ? [] : [each], message: each === undefined ? message : `${each}: ${message}` };
    });
  }

  /** Problems of any proof; a certificate that has ended, or only a fingerprint, is one only where it is new. */
  function problemsOf(config: ObjectValue): readonly Problem[] {
    if (Object.values(config).some(hasUnknown)) return [];
    const wanted = wantedOf(config);
    const isKept = hasEnded(wanted) || (wanted.fingerprint !== undefined && wanted.certificate === undefined);
    const problems = isKept ? [] : newProblems(wanted);
    if (proofLabel(wanted) === undefined || keepsSecrets(config)) return problems;
    const { message, hint } = noKeeper();
    return [...problems, { path: [], message, hint }];
  }

  /** Names of attributes that are other texts now, be it of the same or not. */
  function changedIn(config: ObjectValue, { state }: Instance): readonly string[] {
    const isChanged = (name: string) => !isDeepStrictEqual(config[name] ?? null, state[name] ?? null);
    return Object.keys(proofFields).filter((name) => name !== 'active' && isChanged(name));
  }

  return {
    about: 'A proof of an API key. For a key of `kms_apikey` that names its `proofs`, it would be removed again.',
    attributes,
    problems: problemsOf,
    async refused(config, prior) {
      const isUnknown = Object.values(config).some(hasUnknown);
      const wanted = wantedOf(config);
      if (!prior) return isUnknown ? [] : newProblems(wanted);
      const changed = changedIn(config, prior);
      const byNew = (names: readonly string[]): Problem[] =>
        names.map((name) => ({ path: [name], message: 'is another', isSolvedByNew: true }));
      // It may be the renewed certificate of the same.
      if (isUnknown) return byNew(changed.filter((name) => !certificates.includes(name)));
      if (!changed.includes('days') && isSameProof(wanted, wantedOf(prior.state))) return [];
      return [...newProblems(wanted), ...byNew(changed)];
    },
    unsettled: () => [],
    async read(state) {
      const proof = await proofAt(await open(noSecrets), String(state.keyid), String(state.id));
      return proof ? instanceOf(proof, state) : null;
    },
    async create(config) {
      const keeper = secretKeeper(config, async () => (await open(noSecrets)).client);
      const desk = await open(keeper);
      const [keyid, wanted] = [String(config.keyid), wantedOf(config)];
      await needOther(desk, keyid, wanted);
      const id = await addProof(desk, keyid, wanted);
      // It is not read again: nothing may fail once there is a secret.
      const given = mapped(attributes, (_, name) => config[name] ?? null);
      const state = { ...given, id, active: config.active !== false, ...keeper.values({}) };
      return { made: { state, memory: null } };
    },
    async update(config, { state: prior }) {
      const desk = await open(noSecrets);
      const [keyid, id] = [String(prior.keyid), String(prior.id)];
      const proof = await proofAt(desk, keyid, id);
      if (!proof) throw new KmsError('not-found', `the proof ${id} is gone`, { hint: 'plan again' });
      // Often there is nothing to do: another text of the same certificate, or one that somebody has renewed already.
      await changeProofs(proofActs(desk, keyid), changesOf(wantedOf(config), proof));
      const { secrets = null, wrapped_secrets = null } = prior;
      const changed = { ...proof, active: config.active !== false };
      return { made: instanceOf(changed, config, { secrets, wrapped_secrets }) };
    },
    async remove({ keyid, id }) {
      const desk = await open(noSecrets);
      if (!(await proofAt(desk, String(keyid), String(id)))) return;
      await desk.client.removeProof({ keyid: String(keyid), proof: String(id) });
    },
    async imported(given) {
      const [keyid = '', id] = given.split('/');
      if (id === undefined) throw new KmsError('invalid', 'expected the ids of API key and proof: KEYID/PROOF');
      const proof = await proofAt(await open(noSecrets), keyid, id);
      if (!proof) throw new KmsError('not-found', `there is no proof ${id} of the API key ${keyid}`);
      return { ...mapped(attributes, () => null), id, keyid };
    },
  };
}

/** Attributes of which another value may be the renewed certificate of the same, or its key. */
const certificates: readonly string[] = ['ca', 'certificate', 'fingerprint'];

/** Its secret, if it has one, is in the state. */
function changesOf(wanted: JsonObject, proof: Proof): ProofChanges {
  return proofChanges([wanted], [proof], [proof.id]);
}

/** Other texts alone make no other proof: `refused` tells which one is another. */
function asOwn(attribute: Attribute): Attribute {
  const { field } = attribute;
  const origin = field === 'kind' ? 'required' : field === 'active' ? 'either' : 'optional';
  return { ...attribute, origin, ...(field === 'kind' && { replaces: true as const }) };
}

/** Throws `conflict` if the appliance would renew a proof that is there: that would belong to two resources. */
async function needOther({ client }: Workplace, keyid: string, wanted: JsonObject): Promise<void> {
  if (wanted.kind !== 'certificate' || wanted.issue === true) return;
  const { proofs = [] } = await client.getApiKey({ apikeyid: keyid, proofs: true });
  const same = proofs.find((proof) => isSameButName(wanted, proof));
  if (!same) return;
  const isRenamed = same.name !== (wanted.name ?? '');
  throw new KmsError('conflict', `the API key has this proof already: import it as ${keyid}/${same.id}`, {
    ...(isRenamed && { hint: 'if this renames it, the former has to go first: without create_before_destroy' }),
  });
}

/** Undefined if there is none, or the API key is gone. */
async function proofAt({ client }: Workplace, keyid: string, id: string): Promise<Proof | undefined> {
  try {
    const { proofs = [] } = await client.getApiKey({ apikeyid: keyid, proofs: true });
    return proofs.find((proof) => proof.id === id);
  } catch (error) {
    if (error instanceof KmsError && error.code === 'not-found') return undefined;
    throw error;
  }
}
