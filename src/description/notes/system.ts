// Notes on the endpoints of the appliance itself: health, this description, metrics, backup and the seal.
import type { publicEndpoints, sealEndpoints, systemEndpoints } from '../../api/system.ts';
import type { Note } from '../prose.ts';

type SystemId =
  | (typeof systemEndpoints)[number]['id']
  | (typeof publicEndpoints)[keyof typeof publicEndpoints]['id']
  | (typeof sealEndpoints)[keyof typeof sealEndpoints]['id'];

const apart = { whileSealed: true, tenantless: true } as const;
const watched =
  'The answer has an `ETag`. A request with it in `If-None-Match` gets 304 while nothing changed, and such requests are recorded once an hour per credential, as `session.watch`, instead of each time. Credential and flags are checked each time.';
const metrics = `# HELP kms_requests_total Answered requests of this tenant.
# TYPE kms_requests_total counter
kms_requests_total{action="keyring.encrypt",verdict="granted",status="200"} 4711
`;

export const systemNotes: Readonly<Record<SystemId, Note>> = {
  getHealth: { description: ['For process supervisors: 200 while the process is alive, sealed or not.'], ...apart },
  getReadiness: {
    description: [
      'For load balancers: 200 while the appliance is unsealed and can write, otherwise 503 with the reason. Both show the age of the newest backup, if known. `activity` is present only while files of an activity log are missing or changed; that affects only searches that need them. `label` is there, sealed or not, if the operator gave one.',
    ],
    errorExamples: { 503: { message: 'the appliance is sealed', sealed: true } },
    ...apart,
  },
  getOpenApi: {
    description: ['Generated from the schemas that the server validates with.'],
    answer: { openapi: '3.1.0', info: { title: 'kms', version: '0.1.0' }, paths: {} },
  },
  getDocs: {
    description: [
      'The reference for people: the first of its pages, which need no scripts, and no network except this appliance.',
    ],
    answer: '<!doctype html>',
  },
  createBackup: {
    description: [
      "A consistent copy of all tenants, sealed under the master key, made while the appliance serves. The file is useful only to `kms restore` with that key. It concerns every tenant: the flag counts only in the operator tenant, and every tenant's activity has the record, with `props.by` = `operator`.",
    ],
  },
  getOverview: {
    description: [
      'For a page that stays open: readiness, use over time, and what will need attention. Each section is there only as far as the flags of the caller allow; sections about the whole appliance are for the operator tenant.',
      watched,
    ],
  },
  getNames: {
    description: [
      'For choosing and completing names: those of KeyRings, managed keys, API keys, Users and Accounts, each kind only if the caller may list it, the oldest 5,000 of each.',
      watched,
    ],
  },
  getBackups: {
    description: [
      'Shows where backups go, when the next one is due, and how the last one ended. The flag counts only in the operator tenant.',
    ],
  },
  startBackup: {
    description: [
      "Starts a backup as the schedule would, and answers at once. Its name is of another kind, so it pushes out none of the scheduled ones. The backup is made and test-restored while the appliance serves, and `GET /system/backups` shows the result. If one is already under way, that one continues. Without `kms serve --backup-to` the answer is 400. The flag counts only in the operator tenant, and every tenant's activity has the record, with `props.by` = `operator`.",
    ],
    problems: {
      400: [{ message: 'there is no directory for backups: start the server with --backup-to' }],
    },
  },
  getMetrics: {
    description: [
      "The numbers of this tenant and of the process, in Prometheus' text format. The flag counts only in the operator tenant.",
    ],
    answer: metrics,
  },
  sealStatus: {
    description: [
      'Shows whether the appliance is sealed, which kinds of custodians can unseal it, and how many of the needed shares were given.',
    ],
    ...apart,
  },
  unseal: {
    description: [
      'Takes one secret of a custodian: a `share`, a `passphrase`, or the content of a key file or a recovery kit as `key`. Several people can each enter their share. An appliance that is not sealed returns its state.',
      'Only on the local socket, and 403 elsewhere: `retry`, to look again where the key is found automatically, and `reset`, to forget the shares given so far.',
      'After 5 failures from one address, or 50 from one /48, each further attempt must wait, as at login. The local socket never waits.',
    ],
    body: { passphrase: 'five words that nobody guesses' },
    answer: { sealed: false, kinds: ['passphrase'] },
    problems: {
      400: [{ field: 'body', message: 'expected one of share, passphrase, key, retry and reset' }],
      403: [
        {
          message: 'looking for the key again (retry) is for the local socket: run `kms unseal` on the machine itself',
        },
      ],
      429: [{ message: 'too many failed tries; try again in 4 s' }],
      503: [{ message: 'the key is right, and yet the appliance could not be opened' }],
    },
    ...apart,
  },
  seal: {
    description: [
      "Forgets the master key, once the requests under way have ended. From then on nothing is served until the appliance is unsealed on purpose: a restart does not unseal it, even if its key is there. It concerns every tenant: the flag counts only in the operator tenant, and every tenant's activity has the record, with `props.by` = `operator`.",
    ],
    answer: { sealed: true, kinds: ['passphrase'] },
  },
};
