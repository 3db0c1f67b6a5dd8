// The endpoints in the API description: every declared endpoint with its note.

import type { Access, Endpoint } from '../api/endpoint.ts';
import { type EndpointId, endpoints } from '../api/endpoints.ts';
import { publicEndpoints, sealEndpoints, unsealBody } from '../api/system.ts';
import { accountNotes, activityNotes, apikeyNotes } from './notes/access.ts';
import { approvalNotes } from './notes/approvals.ts';
import { assetNotes, encryptionNotes } from './notes/encryption.ts';
import { keyOperationNotes } from './notes/key-operations.ts';
import { asymNotes, keyringNotes } from './notes/keyrings.ts';
import { managedKeyNotes, tangNotes } from './notes/managed-keys.ts';
import { loginNotes, oidcNotes, secondFactorNotes, userNotes } from './notes/people.ts';
import { proofNotes } from './notes/proofs.ts';
import { secretNotes } from './notes/secrets.ts';
import { systemNotes } from './notes/system.ts';
import type { Note } from './prose.ts';

export interface DescribedEndpoint {
  readonly endpoint: Endpoint;
  readonly note: Note;
  /** The path as the description shows it: parameters at one position have one name, whatever the method. */
  readonly path: string;
}

const notes: Readonly<Record<EndpointId | keyof typeof systemNotes, Note>> = {
  ...keyringNotes,
  ...encryptionNotes,
  ...assetNotes,
  ...asymNotes,
  ...secretNotes,
  ...managedKeyNotes,
  ...keyOperationNotes,
  ...tangNotes,
  ...accountNotes,
  ...apikeyNotes,
  ...proofNotes,
  ...approvalNotes,
  ...activityNotes,
  ...userNotes,
  ...loginNotes,
  ...secondFactorNotes,
  ...oidcNotes,
  ...systemNotes,
};

const { status, unseal, seal } = sealEndpoints;
const { health, readiness, description, docs } = publicEndpoints;

/** The body of an unseal is read by its own code, so its declaration has none. */
const all = [...endpoints, health, readiness, status, { ...unseal, body: unsealBody }, seal, description, docs];

export const describedEndpoints: readonly DescribedEndpoint[] = all.map((endpoint) => ({
  endpoint,
  note: notes[endpoint.id],
  path: describedPath(endpoint.path),
}));

/** OpenAPI does not tell paths apart by parameter names; the endpoint declared first names them. */
function describedPath(path: string): string {
  const shape = (each: string): string => each.replace(/\{\w+\}/g, '{}');
  return all.find((each) => shape(each.path) === shape(path))?.path ?? path;
}

/** The flag that the endpoint needs, with `<ringname>` if it names a ring; undefined if it needs none. */
export function requiredFlag(access: Access): string | undefined {
  if (access.kind !== 'flag') return undefined;
  const flag = access.action;
  return access.ring ? flag.replace('.', '.<ringname>.') : flag;
}

/** The flag as a refusal shows it: if the request names the ring, the example's ring name is filled in. */
export function shownFlag(access: Access, flag: string): string {
  if (access.kind === 'flag' && access.ring?.from === 'secret') return flag.replace('<ringname>', 'mariadb.1');
  const named = access.kind === 'flag' && ['path', 'query', 'body', 'key'].includes(access.ring?.from ?? '');
  return named ? flag.replace('<ringname>', exampleRing(flag)) : flag;
}

/** Managed keys of the examples, by operation. */
const exampleKeys: Readonly<Record<string, string>> = {
  ...{ sign: 'release', verify: 'release', mac: 'tokens', import: 'brought', export: 'portable' },
  ...{ wrap: 'wrapper', unwrap: 'wrapper', derive: 'wrapper' },
};

function exampleRing(flag: string): string {
  if (flag.startsWith('key.')) return exampleKeys[flag.slice(flag.lastIndexOf('.') + 1)] ?? 'unseal';
  return flag.startsWith('asym.') ? 'devices' : 'payroll';
}

/** A sentence on who may call the endpoint. */
export function whoMay(access: Access): string {
  const flag = requiredFlag(access);
  if (access.kind === 'public') return 'No credential is needed.';
  if (flag === undefined) return 'Takes an access token, and no flag.';
  const self = access.kind === 'flag' && access.orSelf !== undefined ? ' A User needs no flag to do it to itself.' : '';
  return `Takes the flag \`${flag}\`.${self}`;
}
