// Notes on the endpoints of proofs of API keys, and of logins by them.
import { sample } from '../../api/example-values.ts';
import type { proofEndpoints } from '../../api/proofs.ts';
import type { Note } from '../prose.ts';

const noKey = { message: 'there is no such API key' };
const noProof = { message: 'the API key has no such proof' };
const cannotGrant = { message: 'the permission flag keyring.payroll.encrypt is missing, so it cannot be granted' };
const stronger = { message: 'the target has the permission flag keyring.payroll.encrypt, which the caller lacks' };
const lastHolder = {
  message:
    'no active API key without an end or a limit to addresses and no user who can log in would hold * any more: give it to another first, or use kms on the appliance itself',
};
const noSession = { message: 'expected a workload token, as a login with a proof gives it' };
const keyid = { description: 'id of the API key', example: sample.apikeyId };
const proof = {
  description: 'id of the proof, `secret` for the secret, or the id of an access key',
  example: sample.proofId,
};

export const proofNotes: Readonly<Record<(typeof proofEndpoints)[number]['id'], Note>> = {
  listProofs: {
    description: [
      'Lists the ways by which the API key is proved: its secret first, if it has one, then the others. Secrets are never shown.',
    ],
    params: { keyid },
    problems: { 404: [noKey] },
  },
  addProof: {
    description: [
      'Adds a way to prove the API key. Whoever presents it acts as the key, so the caller must hold all of its flags. `secret` gives a new secret to a key that has none. `aws` makes an access key; a key has at most two, so that one can replace the other. `jwt` trusts tokens that an issuer signs: it names the issuer, at least one audience, and a subject or a claim that only your own programs have. `certificate` is for TLS client certificates, which then stand in place of an API key in every request: one that you give, whose key is pinned; those of an authority (`ca`) with a certain name (`san`); or one that the appliance issues (`issue`).',
      "The issuer's keys are pinned with `jwks`, or read from what it publishes. Private addresses are asked only if the proof was added by the administrator at the machine, or by somebody who may do everything in the operator tenant.",
      'Certificates are issued by the authority of the tenant, made at the first one: a managed key named `client-ca`, which signs nothing else. Rotating it makes a new authority; certificates that were issued stay good until they expire or their proof goes. While that key is suspended or deactivated nothing is issued; once it is deleted, the next certificate makes another.',
      'A certificate is one proof: of all proofs of the tenant that it fits, also those that are switched off, the oldest counts. If that one is off or at its end, or its API key is, the request is refused, and no younger proof takes it over. What is a proof of another API key already is therefore refused, and so is a SPIFFE ID that an older pattern of another API key with the same authority covers. A certificate with more than 20 alternative names is no proof.',
      'A certificate that an appliance issued proves the API key for which it was issued, and no other, of whatever tenant. `otherTenant` says that an older proof of another tenant is for the same certificates: that one counts over KMIP, which names no tenant, and this one everywhere else.',
      'A certificate or authority with the same key and a later end renews the proof of the same API key in place: the answer has its id, and no other proof is made. Fields of other kinds are refused.',
    ],
    params: { keyid },
    body: {
      kind: 'jwt',
      issuer: 'https://token.actions.githubusercontent.com',
      audience: 'kms',
      claims: { repository_id: '123456789', ref: 'refs/heads/main' },
    },
    problems: {
      400: [
        { message: 'the API key has a secret: remove that first, or make another API key' },
        { field: 'issuer', message: 'is required' },
        { field: 'audience', message: 'is required: which audience the tokens are issued for' },
        { field: 'issuer', message: 'expected https://host[/path] (http on this machine alone)' },
        { field: 'certificate', message: 'expected one of certificate, ca with san, and issue' },
        { message: 'it is a proof of another API key already: a program is one API key' },
        {
          message: 'certificates of that name are an older proof of another API key already: a program is one API key',
        },
        {
          message:
            'an appliance issued it for the API key apik_01jz4b8m6q3v9x2c5d7f8g9h0k, and it proves that one alone: have a certificate issued for this API key',
        },
        { field: 'issuer', message: 'is not for proofs of the kind certificate' },
        { field: 'san', message: 'expected dns:NAME, email:ADDRESS, uri:URI or spiffe://DOMAIN/PATH' },
        {
          field: 'subject',
          message:
            'would let in others: anybody who can get a token from this issuer could have these claims; name a subject, or a claim that only your own programs have',
        },
      ],
      403: [cannotGrant, stronger, { message: 'an API key has at most 20 proofs' }],
      404: [noKey],
    },
  },
  updateProof: {
    description: [
      'Switches a proof off or on. One that is off proves nothing from the next request on, and tokens of its sessions are refused. A secret cannot be switched off, only removed.',
    ],
    params: { keyid, proof },
    problems: { 400: [lastHolder], 403: [cannotGrant, stronger], 404: [noKey, noProof] },
  },
  removeProof: {
    description: [
      'Removes a proof. It proves nothing from the next request on, and its sessions end. A key without any proof cannot be used until it gets one.',
    ],
    params: { keyid, proof },
    problems: { 400: [lastHolder], 403: [stronger], 404: [noKey, noProof] },
  },
  testProof: {
    description: [
      'Checks a signed token against each proof of the API key that trusts an issuer, and tells which check fails and why. Opens no session, and uses up no token.',
    ],
    params: { keyid },
    body: { token: sample.signedToken },
    problems: { 404: [noKey] },
  },
  workloadLogin: {
    description: [
      'For programs that get signed tokens from where they run: a CI system, a Kubernetes cluster, SPIFFE. Answers a workload token, which acts as the API key for at most an hour, can be renewed, and ends with the key, its proof or itself. Nothing in the token chooses keys, algorithms or addresses: those are of the proof.',
      'Without `role`, the proofs that trust the issuer are compared, and exactly one API key must fit.',
      'With `certificate: true` and no token, the client certificate of the connection logs in. Its token is good only in connections with a certificate of the same key, which must still fit the proof. `role` chooses nothing then: the certificate is one proof, the oldest that it fits, and a role must name its API key or itself. Programs that send a certificate need no login: it counts in every request without `Authorization`.',
    ],
    body: { token: sample.signedToken, role: sample.apikeyId },
    problems: {
      400: [
        { message: 'the token was refused: it has expired' },
        { message: 'the client certificate was refused: no API key has it as a proof' },
        { field: 'token', message: 'is required, or `certificate: true`' },
        { field: 'role', message: 'is required: the token fits several API keys' },
      ],
      429: [{ message: 'too many failed logins; try again in 4 s' }],
    },
  },
  getWorkloadSession: {
    description: ["Returns the session of the caller's workload token."],
    problems: { 400: [noSession] },
  },
  renewWorkloadSession: {
    description: [
      "Extends the lease of the caller's workload token, from now on, by `seconds` or as long as may be. No lease is longer than `kms serve --workload-ttl`, and no renewal extends beyond `renewableUntil`.",
    ],
    body: { seconds: 3600 },
    problems: { 400: [noSession] },
  },
  endWorkloadSession: {
    description: ["Ends the session of the caller's workload token."],
    problems: { 400: [noSession] },
  },
};
