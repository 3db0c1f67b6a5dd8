// Everything that the description describes: each declared endpoint with what there is to say of it.

import type { Access, Endpoint } from '../api/endpoint.ts';
import { type EndpointId, endpoints } from '../api/endpoints.ts';
import { publicEndpoints, sealEndpoints, unsealBody } from '../api/system.ts';
import { accountNotes, activityNotes, apikeyNotes } from './notes/access.ts';
import { assetNotes, encryptionNotes } from './notes/encryption.ts';
import { asymNotes, keyringNotes } from './notes/keyrings.ts';
import { loginNotes, oidcNotes, secondFactorNotes, userNotes } from './notes/people.ts';
import { systemNotes } from './notes/system.ts';
import { tangNotes, transitNotes } from './notes/transit.ts';
import type { Note } from './prose.ts';

export interface DescribedEndpoint {
  readonly endpoint: Endpoint;
  readonly note: Note;
  /** As the description has it: one name for the parameter of one place, whatever the method. */
  readonly path: string;
}

const notes: Readonly<Record<EndpointId | keyof typeof systemNotes, Note>> = {
  ...keyringNotes,
  ...encryptionNotes,
  ...assetNotes,
  ...asymNotes,
  ...transitNotes,
  ...tangNotes,
  ...accountNotes,
  ...apikeyNotes,
  ...activityNotes,
  ...userNotes,
  ...loginNotes,
  ...secondFactorNotes,
  ...oidcNotes,
  ...systemNotes,
};

const { status, unseal, seal } = sealEndpoints;
const { health, readiness, description, docs } = publicEndpoints;

/** The body of an unseal is read apart from all others, so its declaration has none. */
const all = [...endpoints, health, readiness, status, { ...unseal, body: unsealBody }, seal, description, docs];

export const describedEndpoints: readonly DescribedEndpoint[] = all.map((endpoint) => ({
  endpoint,
  note: notes[endpoint.id],
  path: describedPath(endpoint.path),
}));

/** OpenAPI tells paths apart without the names of their parameters; the first that is declared names them. */
function describedPath(path: string): string {
  const shape = (each: string): string => each.replace(/\{\w+\}/g, '{}');
  return all.find((each) => shape(each.path) === shape(path))?.path ?? path;
}

/** With `<ringname>` where the flag names a ring; undefined where none is needed. */
export function requiredFlag(access: Access): string | undefined {
  if (access.kind !== 'flag') return undefined;
  const flag = access.action;
  return access.ring ? flag.replace('.', '.<ringname>.') : flag;
}

/** As it stands in a refusal: a ring that is named in the request is named there too. */
export function shownFlag(access: Access, flag: string): string {
  const named = access.kind === 'flag' && ['path', 'query', 'body'].includes(access.ring?.from ?? '');
  return named ? flag.replace('<ringname>', exampleRing(flag)) : flag;
}

function exampleRing(flag: string): string {
  if (flag.startsWith('transit.')) return /\.(?:sign|verify)$/.test(flag) ? 'release' : 'unseal';
  return flag.startsWith('asym.') ? 'devices' : 'payroll';
}

/** One sentence on who may call. */
export function whoMay(access: Access): string {
  const flag = requiredFlag(access);
  if (access.kind === 'public') return 'No credential is needed.';
  if (flag === undefined) return 'Takes an access token, and no flag.';
  const self = access.kind === 'flag' && access.orSelf !== undefined ? ' A User needs no flag to do it to itself.' : '';
  return `Takes the flag \`${flag}\`.${self}`;
}
