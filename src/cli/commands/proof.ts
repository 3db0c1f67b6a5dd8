// Commands for proofs of API keys, and the login by a signed token. A secret that a proof has is shown once.
import { createPublicKey } from 'node:crypto';
import type { Proof } from '../../api/proofs.ts';
import type { Client, InputOf } from '../../client/client.ts';
import { KmsError } from '../../errors.ts';
import { ageText } from '../../model/ages.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { confirm, detailsFrom } from '../confirm.ts';
import { withClient } from '../connect.ts';
import { fileError, newFile, readSmallText } from '../files.ts';
import type { proof, workload } from '../grammar/proof.ts';
import { pathFrom, say } from '../io.ts';
import { type Pair, printJson, printLine, printTable, printThing, showOnce } from '../output.ts';
import { readSecret } from '../secrets.ts';
import type { Column } from '../table.ts';
import { visible } from '../text.ts';
import { keep, keyIdOf, timeText } from './apikey.ts';
import {
  authoritiesFrom,
  certificateFrom,
  certificateText,
  filesFor,
  hasEnded,
  ofCertificates,
  onlyOverTls,
} from './proof-certificate.ts';

/** Options of each kind. */
const ofTokens = [
  '--issuer',
  '--audience',
  '--subject',
  '--claim',
  '--jwks-file',
  '--jwks-url',
  '--once',
  '--longest',
] as const;

export async function add(cli: CliOf<typeof proof.add>): Promise<void> {
  const kind = kindOf(cli);
  refuseMisplaced(cli, kind);
  if (kind === 'secret' && cli.isTyped('--name')) throw cli.wrong('--name: a key has one secret, which has no name');
  const trust = kind === 'jwt' ? await trustFrom(cli) : kind === 'certificate' ? await certificateFrom(cli) : {};
  const path = cli.get('--secret-out');
  if (path !== undefined && kind !== 'aws' && kind !== 'secret') {
    throw cli.wrong('--secret-out is for proofs of the kinds aws and secret');
  }
  const files = cli.get('--issue') ? await filesFor(cli, cli.get('--out') ?? '') : undefined;
  let isMade = false;
  const adding = withClient(cli, async (client) => {
    const keyid = await keyIdOf(client, cli.get('<KEYID>'));
    const input = given({ keyid, kind, name: cli.get('--name'), ...trust });
    // Before the proof is made: a secret that cannot be saved is useless.
    const file = path === undefined ? undefined : await newFile(path, 0o600);
    const made = await client.addProof(input).catch(async (error) => {
      await file?.discard();
      throw asTyped(error);
    });
    isMade = true;
    if (kind === 'certificate') await say(cli.io, onlyOverTls);
    if (made.renewed) await say(cli.io, visible(renewalText(made)));
    if (made.otherTenant) await say(cli.io, elsewhere);
    if (files) {
      await files.keep(made, cli.get('--name') ?? cli.get('<KEYID>'));
      const { privateKey: _, ...shown } = made;
      await printThing(cli, shown, proofPairs(made));
      return say(cli.io, `client.crt, client.key, ca.crt and client.p12 are in ${cli.get('--out')}`);
    }
    if (made.key === undefined && made.secretAccessKey === undefined) return printThing(cli, made, proofPairs(made));
    const failure = file && (await keep(file, secretFile(made)));
    if (file && failure === undefined) {
      const { key: _, secretAccessKey: __, ...safe } = made;
      await printThing(cli, safe, [...accessKeyPairs(made), ...proofPairs(made)]);
      return say(cli.io, visible(`the secret is in ${path}, and nowhere else`));
    }
    await showSecret(cli, keyid, made);
    if (path !== undefined) throw fileError('write', path, failure, 'the secret is shown above, this once');
    await say(cli.io, 'the secret is shown this once: give it to the program that needs it, and keep it nowhere else');
  });
  await adding.catch(async (error) => {
    if (!isMade) await files?.discard();
    throw error;
  });
}

const elsewhere =
  'another tenant has an older proof of the same certificates: over KMIP, which names no tenant, they belong there; ' +
  'elsewhere the host names the tenant, and this proof counts';

function renewalText({ id, name, active }: Proof): string {
  const named = name === '' ? 'without a name' : `under the name ${name}`;
  return `the proof ${id} is renewed, ${named} as before${active ? '' : ', and is still switched off'}`;
}

type MadeProof = Awaited<ReturnType<Client['addProof']>>;

/** The secret as programs read it: an API key on a line, or an access key as variables of the environment. */
function secretFile({ key, accessKeyId, secretAccessKey }: MadeProof): string {
  if (key !== undefined) return `${key}\n`;
  return `AWS_ACCESS_KEY_ID=${accessKeyId}\nAWS_SECRET_ACCESS_KEY=${secretAccessKey}\n`;
}

function accessKeyPairs({ accessKeyId }: MadeProof): readonly Pair[] {
  return accessKeyId === undefined ? [] : [['access key id', accessKeyId]];
}

async function showSecret(cli: Cli, keyid: string, made: MadeProof): Promise<void> {
  const { key, secretAccessKey } = made;
  await showOnce(
    printThing(cli, made, [
      ...(key === undefined ? [] : [['key', key] as const]),
      ...accessKeyPairs(made),
      ...(secretAccessKey === undefined ? [] : [['secret access key', secretAccessKey] as const]),
      ...proofPairs(made),
    ]),
    `the proof ${made.id} was made, and its secret is lost`,
    `kms apikey proof remove ${keyid} ${made.id}`,
  );
}

/** Options by the fields that they become. */
const optionOf: Readonly<Record<string, string>> = {
  certificate: '--file',
  claims: '--claim',
  jwks: '--jwks-file',
  jwksUrl: '--jwks-url',
};

/** A refusal of fields, in the words of the options that they came from. */
function asTyped(error: unknown): unknown {
  const fields = error instanceof KmsError ? Object.entries(error.fields ?? {}) : [];
  if (!(error instanceof KmsError) || fields.length === 0) return error;
  const problems = fields.map(([field, problem]) => {
    const [name = field, ...inner] = field.split('.');
    return `${[optionOf[name] ?? `--${name}`, ...(inner.length > 0 ? [inner.join('.')] : [])].join(' ')}: ${problem}`;
  });
  return new KmsError(error.code, problems.join('; '), { hint: error.hint, cause: error });
}

type Kind = 'aws' | 'certificate' | 'jwt' | 'secret';

function kindOf(cli: CliOf<typeof proof.add>): Kind {
  const kind = cli.get('<KIND>');
  if (kind === 'aws' || kind === 'certificate' || kind === 'jwt' || kind === 'secret') return kind;
  throw cli.wrong(`expected aws, certificate, jwt or secret, got "${kind}"`);
}

/** Throws `usage` for an option of another kind. */
function refuseMisplaced(cli: CliOf<typeof proof.add>, kind: Kind): void {
  const token = kind === 'jwt' ? undefined : ofTokens.find((option) => cli.isTyped(option));
  if (token !== undefined) throw cli.wrong(`${token} is for proofs of the kind jwt`);
  const certificate = kind === 'certificate' ? undefined : ofCertificates.find((option) => cli.isTyped(option));
  if (certificate !== undefined) throw cli.wrong(`${certificate} is for proofs of the kind certificate`);
  if (kind !== 'jwt' && kind !== 'certificate' && cli.isTyped('--ca')) {
    throw cli.wrong('--ca is for proofs of the kinds jwt and certificate');
  }
}

async function trustFrom(cli: CliOf<typeof proof.add>): Promise<Partial<InputOf<'addProof'>>> {
  const issuer = cli.get('--issuer');
  const audience = cli.get('--audience');
  const missing = [issuer === undefined && '--issuer', audience.length === 0 && '--audience'].filter(Boolean);
  if (missing.length > 0) throw cli.wrong(`${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} missing`);
  const jwks = cli.get('--jwks-file');
  const ca = cli.get('--ca');
  const longest = cli.get('--longest');
  if (longest !== undefined && (longest < 60_000 || longest > 86_400_000)) {
    throw cli.wrong('--longest: expected 1m to 24h');
  }
  return given({
    issuer,
    audience: [...audience],
    subject: cli.get('--subject'),
    claims: claimsFrom(cli),
    jwks: jwks === undefined ? undefined : await keysIn(cli, jwks),
    jwksUrl: cli.get('--jwks-url'),
    ca: ca === undefined ? undefined : await authoritiesFrom(cli, ca),
    once: cli.get('--once') || undefined,
    longest: longest === undefined ? undefined : Math.floor(longest / 1000),
  });
}

function claimsFrom(cli: CliOf<typeof proof.add>): JsonObject | undefined {
  const claims = new Map<string, string[]>();
  for (const each of cli.get('--claim')) {
    const at = each.indexOf('=');
    if (at <= 0) throw cli.wrong(`--claim: expected NAME=VALUE, got "${each}"`);
    const name = each.slice(0, at);
    claims.set(name, [...(claims.get(name) ?? []), each.slice(at + 1)]);
  }
  return claims.size === 0 ? undefined : Object.fromEntries(claims);
}

const publicBlock = /-----BEGIN (?:RSA )?PUBLIC KEY-----[\s\S]+?-----END (?:RSA )?PUBLIC KEY-----/g;

/** Public keys in a file: a JSON Web Key Set, one such key, or PEM. Anything secret in it stays on this machine. */
async function keysIn(cli: Cli, file: string): Promise<JsonObject> {
  const text = await readSmallText(pathFrom(cli.io, file), 'the public keys', 1_048_576);
  const keys = keysOf(text);
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text) || keys?.some((key) => 'd' in key || 'k' in key)) {
    throw new KmsError('refused', `${file} has a private or secret key, which the appliance must not get`, {
      hint: 'give the public keys alone: `openssl pkey -pubout` makes one of a private key',
    });
  }
  if (keys && keys.length > 0) return { ...jsonOf(text), keys };
  throw new KmsError('invalid', `${file} holds no public keys`, {
    hint: 'give a JSON Web Key Set, as an issuer publishes it, or PEM with BEGIN PUBLIC KEY',
  });
}

function keysOf(text: string): readonly JsonObject[] | undefined {
  const blocks = text.match(publicBlock);
  try {
    if (blocks) return blocks.map((pem) => ({ ...createPublicKey(pem).export({ format: 'jwk' }) }));
  } catch {
    return undefined;
  }
  const value = jsonOf(text);
  if (!value) return undefined;
  const keys = Array.isArray(value.keys) ? value.keys : 'kty' in value ? [value] : [];
  return keys.every(isJsonObject) ? keys : undefined;
}

function jsonOf(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export async function list(cli: CliOf<typeof proof.list>): Promise<void> {
  await withClient(cli, async (client) => {
    const keyid = await keyIdOf(client, cli.get('<KEYID>'));
    const answer = await client.listProofs({ keyid });
    if (cli.json) await printJson(cli, answer);
    else if (answer.proofs.length > 0) await printTable(cli, answer.proofs, columnsFor(answer.proofs));
    else
      await say(cli.io, `no proofs: nobody can act as this API key until \`kms apikey proof add ${keyid}\` adds one`);
  });
}

export async function disable(cli: CliOf<typeof proof.disable>): Promise<void> {
  const id = cli.get('<PROOF>');
  if (id === 'secret') {
    throw new KmsError('refused', 'a secret cannot be disabled', {
      hint: 'remove it with `kms apikey proof remove`, or disable the whole key with `kms apikey revoke`',
    });
  }
  const details = () => detailsFrom(cli, async (client) => [await useOf(client, cli.get('<KEYID>'), id)]);
  await confirm(cli, `disables the proof ${id}: programs that use it are refused at once`, { details });
  await setActive(cli, false);
}

export async function enable(cli: CliOf<typeof proof.enable>): Promise<void> {
  await setActive(cli, true);
}

async function setActive(cli: CliOf<typeof proof.enable>, active: boolean): Promise<void> {
  await withClient(cli, async (client) => {
    const keyid = await keyIdOf(client, cli.get('<KEYID>'));
    const answer = await client.updateProof({ keyid, proof: cli.get('<PROOF>'), active });
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, `${answer.id} is ${active ? 'active' : 'disabled'}`);
  });
}

export async function remove(cli: CliOf<typeof proof.remove>): Promise<void> {
  const id = cli.get('<PROOF>');
  const details = () => detailsFrom(cli, async (client) => [await useOf(client, cli.get('<KEYID>'), id)]);
  await confirm(cli, `removes the proof ${id} for good: programs that use it are refused at once`, { details });
  await withClient(cli, async (client) => {
    const keyid = await keyIdOf(client, cli.get('<KEYID>'));
    const answer = await client.removeProof({ keyid, proof: id });
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, `${id} is removed`);
  });
}

/** The last use of a proof. Throws `not-found`. */
async function useOf(client: Client, typed: string, id: string): Promise<string> {
  const { proofs } = await client.listProofs({ keyid: await keyIdOf(client, typed) });
  const found = proofs.find((each) => each.id === id || each.accessKeyId === id);
  if (!found) throw new KmsError('not-found', 'the API key has no such proof');
  if (found.kind === 'secret') return 'its secret';
  return `${found.kind}, last used: ${timeText(found.lastUsedAt)}`;
}

/** The signed token in the file, or from stdin. Systems that make such files let others read them. */
async function signedToken(cli: Cli, file: string | undefined): Promise<string> {
  const source = file ?? 'stdin';
  const given =
    file === undefined ? await readSecret(cli, 'token') : await readSmallText(pathFrom(cli.io, file), 'the token');
  const token = given.trim();
  if (token !== '') return token;
  throw new KmsError('invalid', `${source} holds no token`, {
    hint: 'a signed token has three parts with dots between',
  });
}

export async function test(cli: CliOf<typeof proof.test>): Promise<void> {
  const token = await signedToken(cli, cli.get('--token-file'));
  const answer = await withClient(cli, async (client) =>
    client.testProof({ keyid: await keyIdOf(client, cli.get('<KEYID>')), token }),
  );
  if (cli.json) await printJson(cli, answer);
  else {
    for (const { proof: id, steps, accepted } of answer.proofs) {
      await printLine(cli, `${id}: ${accepted ? 'lets it in' : 'refuses it'}`);
      for (const { check, ok, reason } of steps) {
        await printLine(cli, `  ${ok ? 'ok' : 'no'}  ${check}${reason === undefined ? '' : `: ${reason}`}`);
      }
    }
  }
  if (answer.proofs.some(({ accepted }) => accepted)) return;
  throw new KmsError('refused', 'no proof of the API key lets this token in', {
    hint:
      answer.proofs.length === 0
        ? 'add one with `kms apikey proof add KEYID jwt`; `kms apikey login KEYID --certificate` tries a client certificate'
        : 'the checks above say why',
  });
}

/** Prints the token alone, so that a shell can take it. */
export async function login(cli: CliOf<typeof workload.login>): Promise<void> {
  const lease = cli.get('--lease');
  const certificate = cli.get('--certificate');
  if (certificate && cli.isTyped('--token-file')) throw cli.wrong('--certificate and --token-file exclude each other');
  const proof = certificate ? { certificate } : { token: await signedToken(cli, cli.get('--token-file')) };
  const seconds = lease === undefined ? undefined : Math.max(1, Math.floor(lease / 1000));
  await withClient(cli, async (client, { hasCertificate }) => {
    if (certificate && !hasCertificate) throw cli.wrong('--certificate needs --server and --client-cert');
    const answer = await client.workloadLogin(given({ ...proof, role: cli.get('<ROLE>'), seconds }));
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, answer.accessToken);
  });
}

function proofPairs(each: Proof): readonly Pair[] {
  return [
    ['id', each.id],
    ['kind', each.kind],
    ['name', each.name === '' ? undefined : each.name],
    ['on', onText(each)],
    ['AWS account', each.awsAccount],
    ['issuer', each.issuer],
    ['audience', each.audience?.join(' ')],
    ['subject', each.subject],
    ['claims', claimsText(each) || undefined],
    ['name in it', each.san],
    ['authority', each.authority],
    [each.san === undefined ? 'public key (SHA-256)' : "authority's key (SHA-256)", each.fingerprint],
    [each.san === undefined && !each.issued ? 'certificate until' : 'valid until', each.notAfter],
    ['keys', each.kind !== 'jwt' ? undefined : each.jwks ? 'pinned' : (each.jwksUrl ?? 'by discovery')],
    ['once', each.once === true ? 'yes' : undefined],
    ['longest', each.longest === undefined ? undefined : ageText(each.longest * 1000)],
    ['created', each.createdAt],
    ['last used', each.kind === 'secret' ? undefined : timeText(each.lastUsedAt)],
  ];
}

const until: Column<Proof> = {
  title: 'until',
  value: ({ notAfter = '' }) => notAfter.slice(0, 10),
  whole: true,
  isRed: (each) => hasEnded(each, Date.now()),
};

/** Only certificates have an end. */
const columnsFor = (proofs: readonly Proof[]): readonly Column<Proof>[] => [
  { title: 'proof', value: (each) => each.id, short: true },
  { title: 'kind', value: (each) => each.kind, whole: true },
  { title: 'name', value: (each) => each.name, spare: true },
  { title: 'on', value: onText, whole: true },
  ...(proofs.some(({ notAfter }) => notAfter !== undefined) ? [until] : []),
  { title: 'of', value: trustedBy },
  { title: 'last used', value: (each) => (each.kind === 'secret' ? '' : timeText(each.lastUsedAt)), short: true },
];

function onText(each: Proof): string {
  if (!each.active) return 'no';
  return hasEnded(each, Date.now()) ? 'expired' : 'yes';
}

/** The form in which a proof is recognized, in one line. */
function trustedBy(each: Proof): string {
  const { accessKeyId, issuer, subject } = each;
  if (each.kind === 'certificate') return certificateText(each);
  return accessKeyId ?? [issuer, subject, claimsText(each)].filter(Boolean).join(' ');
}

function claimsText({ claims = {} }: Proof): string {
  return Object.entries(claims)
    .map(([name, value]) => `${name}=${[value].flat().join('|')}`)
    .join(' ');
}
