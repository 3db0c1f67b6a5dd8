// Notes on the appliance itself: health, this description, metrics, backup and the seal.
import type { systemEndpoints } from '../../endpoints/system.ts';
import type { publicEndpoints } from '../../health.ts';
import type { sealEndpoints } from '../../seal.ts';
import type { Note } from '../note.ts';

type SystemId =
  | (typeof systemEndpoints)[number]['id']
  | (typeof publicEndpoints)[keyof typeof publicEndpoints]['id']
  | (typeof sealEndpoints)[keyof typeof sealEndpoints]['id'];

const apart = { whileSealed: true, tenantless: true } as const;
const metrics = `# HELP kms_requests_total Answered requests of this tenant.
# TYPE kms_requests_total counter
kms_requests_total{action="keyring.encrypt",verdict="granted",status="200"} 4711
`;

export const systemNotes: Readonly<Record<SystemId, Note>> = {
  getHealth: { description: ['For whatever restarts the process: 200 while it lives, sealed or not.'], ...apart },
  getReadiness: {
    description: [
      'For whatever sends requests here: 200 while the appliance is unsealed and can write, else 503 with the reason. Both tell how old the newest backup is, where that is known.',
    ],
    errorExamples: { 503: { message: 'the appliance is sealed', sealed: true } },
    ...apart,
  },
  getOpenApi: {
    description: ['Made from the schemas that the server validates with.'],
    answer: { openapi: '3.1.0', info: { title: 'kms', version: '0.1.0' }, paths: {} },
  },
  getDocs: {
    description: ['The reference for people: one page without scripts, which needs no network but this appliance.'],
    answer: '<!doctype html>',
  },
  createBackup: {
    description: [
      'A consistent copy of all tenants, sealed under the master key, made while the appliance serves. The file is of use only to `kms restore` with that key.',
    ],
    problems: { 503: ['this appliance cannot be backed up'] },
  },
  getMetrics: {
    description: ["The numbers of this tenant and of the process, in Prometheus' text format."],
    answer: metrics,
    problems: { 503: ['this appliance keeps no metrics'] },
  },
  sealStatus: {
    description: [
      'Whether the appliance is sealed, which kinds of custodians can unseal it, and how many shares were given of those that it takes.',
    ],
    ...apart,
  },
  unseal: {
    description: [
      'Takes one of: a `share`, a `passphrase`, the content of a key file or a recovery kit as `key`, `retry` to look again where the key comes from by itself, `reset` to forget the shares that were given. Several people can each enter their share. An appliance that is not sealed answers its state.',
    ],
    body: { passphrase: 'five words that nobody guesses' },
    answer: { sealed: false, kinds: ['passphrase'] },
    problems: {
      400: ['body: expected one of share, passphrase, key, retry and reset'],
      429: ['too many failed tries; try again in 4 s'],
      503: ['the key is right, and yet the appliance could not be opened'],
    },
    ...apart,
  },
  seal: {
    description: [
      'Forgets the master key, once the requests under way have ended. From then on nothing is served until the appliance is unsealed. This concerns every tenant, so it takes the flag `*`.',
    ],
    answer: { sealed: true, kinds: ['passphrase'] },
  },
};
