// Commands for proofs of API keys, keys without a secret, and the login by a signed token.
import assert from 'node:assert/strict';
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { createSecureContext } from 'node:tls';
import { stripVTControlCharacters } from 'node:util';
import { exportSPKI, importJWK } from 'jose';
import type { AnyJson } from '../support/appliance.ts';
import { TestCertificate } from '../support/client-certificates.ts';
import { TokenIssuer } from '../support/token-issuer.ts';
import { pick, type RunOptions, typed } from './kms.ts';
import { type ServedDesk, servedDesk } from './served.ts';

const tty = { stdin: true, stdout: true, stderr: true };
const trusting = '--issuer https://ci.example.org --audience kms --subject build';

interface Around {
  readonly d: ServedDesk;
  readonly issuer: TokenIssuer;
  readonly keyid: string;
  [Symbol.asyncDispose](): Promise<void>;
}

/** An API key `ci` without a secret, and an issuer whose keys are in `ci.jwks`. */
async function around(): Promise<Around> {
  const d = await servedDesk();
  const issuer = await TokenIssuer.make(() => d.appliance.world.now());
  await writeFile(d.path('ci.jwks'), JSON.stringify(issuer.jwks));
  const { keyid } = await d.json<{ keyid: string }>(
    'apikey create --account admin --name ci --flag keyring.list --without-secret --json',
  );
  return { d, issuer, keyid, [Symbol.asyncDispose]: () => d[Symbol.asyncDispose]() };
}

const added = (d: ServedDesk, more = ''): Promise<AnyJson> =>
  d.json(`apikey proof add ci jwt ${trusting} --jwks-file ci.jwks ${more} --json`.replaceAll(/ +/g, ' '));

test('a key without a secret shows none, and says how it gets a proof', async () => {
  await using d = await servedDesk();
  const made = await d.kms('apikey create --account admin --name ci --flag keyring.list --without-secret');
  assert.equal(made.code, 0, made.stderr);
  assert.doesNotMatch(made.stdout, /kms_|^key /m);
  const [, keyid = ''] = /(apik_\w{26})/.exec(made.stdout) ?? [];
  assert.equal(
    made.stderr,
    `kms: the key has no secret: \`kms apikey proof add ${keyid}\` says by what it is proved\n`,
  );
  const json = await d.json('apikey create --account admin --without-secret --json');
  assert.equal('key' in json, false);
  assert.equal(typeof (await d.json('apikey create --account admin --json')).key, 'string');
  const both = await d.kms('apikey create --account admin --without-secret --secret-out x');
  assert.equal(both.code, 2);
  assert.match(both.stderr, /^kms: --secret-out and --without-secret exclude each other; see /);
  const none = await d.kms(`apikey proof list ${keyid}`);
  assert.deepEqual(pick(none), [
    0,
    '',
    `kms: no proofs: nobody can act as this API key until \`kms apikey proof add ${keyid}\` adds one\n`,
  ]);
});

test('a proof of every kind is added, listed, switched off and on, and removed', async () => {
  await using a = await around();
  const { d, keyid } = a;
  const jwt = await d.kms(
    `apikey proof add ci jwt ${trusting} --audience vault --jwks-file ci.jwks --name CI --once --longest 15m`,
  );
  assert.equal(jwt.code, 0, jwt.stderr);
  assert.match(
    jwt.stdout,
    /^id +proof_\w{26}\nkind +jwt\nname +CI\non +yes\nissuer +https:\/\/ci\.example\.org\naudience +kms vault\nsubject +build\nkeys +pinned\nonce +yes\nlongest +15m\ncreated +\S+\nlast used +never\n$/,
  );
  assert.equal(jwt.stderr, '');
  const [, id = ''] = /(proof_\w{26})/.exec(jwt.stdout) ?? [];

  const aws = await d.kms('apikey proof add ci aws --name sigv4');
  assert.equal(aws.code, 0, aws.stderr);
  const [, accessKeyId = '', secretAccessKey = ''] =
    /^access key id +(KMSA\w{16})\nsecret access key +(\S{40})\nid +proof_/.exec(aws.stdout) ?? [];
  assert.notEqual(secretAccessKey, '', aws.stdout);
  assert.match(aws.stderr, /^kms: the secret is shown this once: give it to the program that needs it/);
  const kept = await d.kms('apikey proof add ci aws --secret-out access-key.env');
  assert.equal(kept.code, 0, kept.stderr);
  assert.match(kept.stdout, /^access key id +KMSA\w{16}\nid +proof_/);
  assert.equal(kept.stderr, `kms: the secret is in ${d.path('access-key.env')}, and nowhere else\n`);
  const file = d.path('access-key.env');
  assert.match(readFileSync(file, 'utf8'), /^AWS_ACCESS_KEY_ID=KMSA\w{16}\nAWS_SECRET_ACCESS_KEY=\S{40}\n$/);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const [, keptId = ''] = /(proof_\w{26})/.exec(kept.stdout) ?? [];
  assert.equal((await d.kms(`apikey proof remove ci ${keptId} --yes`)).code, 0);
  const wrong = await d.kms(`apikey proof add ci jwt ${trusting} --jwks-file ci.jwks --secret-out x`);
  assert.match(wrong.stderr, /--secret-out is for proofs of the kinds aws and secret/);
  const secret = await d.json('apikey proof add ci secret --json');
  assert.match(String(secret.key), /^kms_/);

  const { proofs } = await d.json<AnyJson>(`apikey proof list ${keyid} --json`);
  assert.deepEqual(
    proofs.map(({ kind }: AnyJson) => kind),
    ['secret', 'jwt', 'aws'],
  );
  assert.equal(proofs[1].longest, 900);
  for (const shown of [JSON.stringify(proofs), (await d.kms('apikey proof list ci')).stdout]) {
    assert.equal(shown.includes(secretAccessKey) || shown.includes(String(secret.key)), false);
  }
  assert.deepEqual(pick(await d.kms(`apikey proof disable ci ${id} --yes`)), [0, `${id} is disabled\n`, '']);
  assert.match((await d.kms('apikey proof list ci')).stdout, new RegExp(`^${id} +jwt +CI +no `, 'm'));
  assert.deepEqual(pick(await d.kms(`apikey proof enable ci ${id}`)), [0, `${id} is active\n`, '']);
  assert.equal((await d.json(`apikey proof disable ci ${id} --yes --json`)).active, false);
  assert.equal((await d.json(`apikey proof enable ci ${id} --json`)).active, true);
  assert.deepEqual(pick(await d.kms(`apikey proof remove ci ${accessKeyId} --yes`)), [
    0,
    `${accessKeyId} is removed\n`,
    '',
  ]);
  assert.deepEqual(await d.json('apikey proof remove ci secret --yes --json'), {});
  assert.equal((await d.json<AnyJson>('apikey proof list ci --json')).proofs.length, 1);
});

test('claims and authorities reach the appliance as they were typed', async () => {
  await using a = await around();
  const { d } = a;
  await writeFile(d.path('ca.pem'), '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n');
  const { claims, issuer, audience, jwksUrl, once, longest } = await d.json<AnyJson>([
    ...'apikey proof add ci jwt --issuer https://gitlab.example.org --audience kms --json'.split(' '),
    ...['--claim', 'project_id=7', '--claim', 'ref=main', '--claim', 'ref=release/*', '--claim', '/a/b=x=y'],
    ...['--jwks-url', 'https://gitlab.example.org/oauth/discovery/keys', '--ca', 'ca.pem'],
  ]);
  assert.deepEqual(claims, { project_id: ['7'], ref: ['main', 'release/*'], '/a/b': ['x=y'] });
  assert.deepEqual(
    [issuer, audience, jwksUrl, once, longest],
    ['https://gitlab.example.org', ['kms'], 'https://gitlab.example.org/oauth/discovery/keys', false, 86_400],
  );
});

test('public keys are read as a set, one key, a bundle or PEM', async () => {
  await using a = await around();
  const { d, issuer } = a;
  const [jwk] = issuer.jwks.keys;
  assert.ok(jwk);
  const key = await importJWK(jwk, 'ES256');
  assert.ok(!(key instanceof Uint8Array));
  const pem = await exportSPKI(key);
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey;
  const pkcs1 = rsa.export({ type: 'pkcs1', format: 'pem' });
  const files: Readonly<Record<string, readonly [text: string, keys: number]>> = {
    'a set': [JSON.stringify(issuer.jwks), 1],
    'one key': [JSON.stringify(jwk), 1],
    PEM: [pem, 1],
    'PEM with Windows line ends, and words around it': [`my key\r\n${pem.replaceAll('\n', '\r\n')}\r\n`, 1],
    'several in PEM': [`${pem}${pkcs1}`, 2],
    'a bundle': [JSON.stringify({ spiffe_sequence: 1, keys: [{ ...jwk, use: 'jwt-svid' }] }), 1],
  };
  for (const [what, [text, count]] of Object.entries(files)) {
    await writeFile(d.path('keys'), text);
    const made = await d.json<AnyJson>(`apikey proof add ci jwt ${trusting} --jwks-file keys --json`);
    assert.equal(made.jwks.keys.length, count, what);
    const log = await d.json<AnyJson>(['apikey', 'login', made.id, '--json'], { stdin: await issuer.token() });
    assert.equal(log.proof, made.id, what);
    await d.kms(`apikey proof remove ci ${made.id} --yes`);
  }
});

test('private and secret keys stay on this machine, and what holds no keys is refused', async () => {
  await using a = await around();
  const { d, issuer } = a;
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = ec.privateKey.export({ type: 'pkcs8', format: 'pem' });
  const sec1 = ec.privateKey.export({ type: 'sec1', format: 'pem' });
  const isPrivate = /^kms: \S+ has a private or secret key, which the appliance must not get; give the public keys /;
  const isNone = /^kms: \S+ holds no public keys; give a JSON Web Key Set, /;
  const files: Readonly<Record<string, readonly [text: string, said: RegExp]>> = {
    'a private key': [String(pem), isPrivate],
    'an EC private key': [String(sec1), isPrivate],
    'both halves': [`${ec.publicKey.export({ type: 'spki', format: 'pem' })}${pem}`, isPrivate],
    'a private JSON key': [JSON.stringify(ec.privateKey.export({ format: 'jwk' })), isPrivate],
    'a secret among public keys': [JSON.stringify({ keys: [...issuer.jwks.keys, { kty: 'oct', k: 'AA' }] }), isPrivate],
    nothing: ['', isNone],
    'no keys': ['{"keys":[]}', isNone],
    'another document': [JSON.stringify({ issuer: 'x', jwks_uri: 'y' }), isNone],
    'a list of words': ['{"keys":["x"]}', isNone],
    'broken PEM': ['-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n', isNone],
  };
  const before = (await d.appliance.activity()).length;
  for (const [what, [text, said]] of Object.entries(files)) {
    await writeFile(d.path('keys'), text);
    const { code, stdout, stderr } = await d.kms(`apikey proof add ci jwt ${trusting} --jwks-file keys`);
    assert.deepEqual([code, stdout], [1, ''], what);
    assert.match(stderr, said, what);
  }
  assert.equal((await d.appliance.activity()).length, before);
  const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey;
  await writeFile(d.path('keys'), small.export({ type: 'spki', format: 'pem' }));
  const { code, stderr } = await d.kms(`apikey proof add ci jwt ${trusting} --jwks-file keys`);
  assert.equal(code, 1);
  assert.match(stderr, /^kms: --jwks-file: has no key for signed tokens/);
  assert.match(
    (await d.kms(`apikey proof add ci jwt ${trusting} --jwks-file absent`)).stderr,
    /^kms: cannot read the public keys from \S+absent: /,
  );
});

test('wrong usage is exit code 2, and nothing is asked of the appliance', async () => {
  await using a = await around();
  const { d } = a;
  const before = (await d.appliance.activity()).length;
  const rows: readonly (readonly [line: string, said: RegExp])[] = [
    ['proof add ci', /missing required argument 'KIND'/],
    ['proof add ci x509', /expected aws, certificate, jwt or secret, got "x509"/],
    ['proof add ci jwt', /--issuer and --audience are missing/],
    ['proof add ci jwt --issuer https://ci.example.org', /--audience is missing/],
    ['proof add ci jwt --audience kms', /--issuer is missing/],
    ['proof add ci jwt --issuer https://x --audience kms --claim ref', /--claim: expected NAME=VALUE, got "ref"/],
    ['proof add ci jwt --issuer https://x --audience kms --claim =x', /--claim: expected NAME=VALUE, got "=x"/],
    ['proof add ci jwt --issuer https://x --audience kms --longest soon', /--longest: expected a duration/],
    ['proof add ci jwt --issuer https://x --audience kms --longest 2d', /--longest: expected 1m to 24h/],
    ['proof add ci jwt --issuer https://x --audience kms --longest 59s', /--longest: expected 1m to 24h/],
    ['proof add ci secret --name x', /--name: a key has one secret, which has no name/],
    ...['--issuer x', '--audience x', '--subject x', '--claim a=b', '--jwks-file x', '--jwks-url x', '--ca x'].map(
      (option) =>
        [
          `proof add ci aws ${option}`,
          /^kms: --[a-z-]+ (is for proofs of the kind jwt|is for proofs of the kinds jwt and certificate); see /,
        ] as const,
    ),
    ['proof add ci secret --once', /--once is for proofs of the kind jwt/],
    ['proof add ci aws --longest 1h', /--longest is for proofs of the kind jwt/],
    ['proof list', /missing required argument 'KEYID'/],
    ['proof list ci x', /too many arguments/],
    ['proof disable ci', /missing required argument 'PROOF'/],
    ['proof enable ci', /missing required argument 'PROOF'/],
    ['proof remove ci', /missing required argument 'PROOF'/],
    ['proof disable ci x', /this disables the proof x: .*add --yes to do it/],
    ['proof remove ci x', /this removes the proof x for good: .*add --yes to do it/],
    ['proof test', /missing required argument 'KEYID'/],
    ['proof test ci --token x', /unknown option '--token'/],
    ['login', /missing required argument 'ROLE'/],
    ['login ci --lease 5', /--lease: expected a duration such as 30s, 15m, 12h or 7d, got "5"/],
    ['login ci --token-file', /argument missing/],
  ];
  for (const [line, said] of rows) {
    const { code, stdout, stderr } = await d.kms(`apikey ${line}`);
    assert.deepEqual([code, stdout], [2, ''], `${line}: ${stderr}`);
    assert.match(stderr, said, line);
  }
  assert.equal((await d.appliance.activity()).length, before);
});

test('a trust that lets in strangers is refused in words', async () => {
  await using a = await around();
  const { d } = a;
  const { code, stderr } = await d.kms('apikey proof add ci jwt --issuer https://gitlab.com --audience kms');
  assert.equal(code, 1);
  assert.match(stderr, /^kms: --subject: would let in others: anybody who can get a token from this issuer/);
  const claim = await d.kms(`apikey proof add ci jwt ${trusting} --claim ${'x'.repeat(1030)}=y`);
  assert.match(claim.stderr, /^kms: --claim: expected at most 1024 characters/);
});

test('a login prints the token alone, from a file or stdin, with blanks around it', async () => {
  await using a = await around();
  const { d, issuer, keyid } = a;
  const { id } = await added(d);
  const token = await issuer.token();
  await writeFile(d.path('token'), `${token}\n`);
  // Kubernetes makes them so: others can read it.
  await chmod(d.path('token'), 0o644);
  for (const [args, options] of [
    [['ci', '--token-file', 'token'], {}],
    [[keyid, '--token-file', d.path('token')], {}],
    [[id], { stdin: `${token}\r\n` }],
    [['ci'], { stdin: typed(`${token}\n`), tty: { stdin: true, stderr: true } }],
  ] as const satisfies readonly (readonly [readonly string[], RunOptions])[]) {
    const { code, stdout } = await d.kms(['apikey', 'login', ...args], options);
    assert.equal(code, 0, args.join(' '));
    assert.match(stdout, /^kmswt_\w+\n$/, args.join(' '));
    const { env } = d.network(stdout.trim());
    assert.equal((await d.kms(['keyring', 'list', '--server', d.url], { env })).code, 0, args.join(' '));
  }
  const answer = await d.json<AnyJson>('apikey login ci --token-file token --lease 5m --json');
  assert.deepEqual([answer.keyid, answer.proof, answer.subject, answer.expiresIn], [keyid, id, 'build', 300]);
  // No credential is needed to log in, and one that has ended is no hindrance.
  for (const env of [{}, { KMS_API_KEY: answer.accessToken.replace(/.$/, 'x') }] as readonly Record<string, string>[]) {
    const far = await d.kms(['apikey', 'login', 'ci', '--token-file', 'token', '--server', d.url], { env });
    assert.deepEqual([far.code, far.stderr], [0, '']);
  }
});

test('a login that is refused says why, and shows no token', async () => {
  await using a = await around();
  const { d, issuer } = a;
  await added(d);
  const refused = async (token: string, said: string, role = 'ci') => {
    const { code, stdout, stderr } = await d.kms(['apikey', 'login', role], { stdin: token });
    assert.deepEqual([code, stdout], [1, ''], stderr);
    assert.ok(stderr.startsWith(`kms: ${said}`), stderr);
    assert.equal(token !== '' && stderr.includes(token), false);
  };
  await refused(await issuer.token({ aud: 'x' }), 'the token was refused: it was issued for another audience');
  await refused(
    await issuer.token(),
    'the token was refused: no active API key of that name or id trusts its issuer',
    'cd',
  );
  // The proof with which the token got furthest tells why.
  const other = await TokenIssuer.make(() => d.appliance.world.now());
  await d.kms('apikey proof add ci jwt --issuer https://x.example --audience kms --subject build --jwks-file ci.jwks');
  await refused(await other.token(), 'the token was refused: its signature is not from its issuer');
  await refused('rubbish', 'the token was refused: it is not a signed token of three parts');
  await refused('', 'stdin holds no token; a signed token has three parts with dots between');
  await writeFile(d.path('empty'), '\n');
  const empty = await d.kms('apikey login ci --token-file empty');
  assert.deepEqual([empty.code, /^kms: \S+empty holds no token; /.test(empty.stderr)], [1, true]);
  assert.match(
    (await d.kms('apikey login ci --token-file absent')).stderr,
    /^kms: cannot read the token from \S+absent: /,
  );
});

test('a test of a token shows each check, and exits with 1 if no proof lets it in', async () => {
  await using a = await around();
  const { d, issuer, keyid } = a;
  const none = await d.kms('apikey proof test ci', { stdin: await issuer.token() });
  assert.deepEqual(pick(none), [
    1,
    '',
    'kms: no proof of the API key lets this token in; add one with `kms apikey proof add KEYID jwt`; `kms apikey login KEYID --certificate` tries a client certificate\n',
  ]);
  const { id } = await added(d);
  await writeFile(d.path('token'), `${await issuer.token()}\n`);
  const asked = () => d.kms('apikey proof test ci --token-file token');
  const checks = ['issuer', 'form', 'keys', 'signature', 'audience', 'time', 'subject', 'claims'];
  const passed = checks.map((check) => `  ok  ${check}\n`).join('');
  assert.deepEqual(pick(await asked()), [0, `${id}: lets it in\n${passed}  ok  api-key\n`, '']);
  const json = await d.kms('apikey proof test ci --json', { stdin: await issuer.token({ aud: 'x' }) });
  assert.equal(json.code, 1);
  assert.deepEqual(JSON.parse(json.stdout).proofs[0].steps.at(-1), {
    check: 'audience',
    ok: false,
    reason: 'it was issued for another audience',
  });
  const why = 'kms: no proof of the API key lets this token in; the checks above say why\n';
  const rubbish = await d.kms('apikey proof test ci', { stdin: 'rubbish' });
  assert.equal(rubbish.stdout, `${id}: refuses it\n  no  form: it is not a signed token of three parts\n`);
  await d.kms(`apikey proof disable ci ${id} --yes`);
  const off = `${id}: refuses it\n${passed}  no  api-key: the proof is disabled\n`;
  assert.deepEqual(pick(await asked()), [1, off, why]);
  await d.kms(`apikey proof enable ci ${id}`);
  await d.kms('apikey revoke ci');
  const revoked = `${id}: refuses it\n${passed}  no  api-key: the API key is disabled or expired\n`;
  assert.deepEqual(pick(await asked()), [1, revoked, why]);
  assert.equal((await d.appliance.activity()).filter(({ action }) => action === 'session.create').length, 0, keyid);
});

test('disabling and removing ask on a terminal, with the last use, and say at once what is wrong', async () => {
  await using a = await around();
  const { d, issuer } = a;
  const { id } = await added(d);
  const asked = (line: string, answer = 'n\n') => d.kms(`apikey proof ${line}`, { tty, stdin: typed(answer) });
  const not = 'kms: not confirmed; nothing was done\n';
  const disabling = `jwt, last used: never\nThis disables the proof ${id}: programs that use it are refused at once. Go on? [y/N] `;
  assert.deepEqual(pick(await asked(`disable ci ${id}`)), [1, '', `${disabling}${not}`]);
  await d.json(['apikey', 'login', 'ci', '--json'], { stdin: await issuer.token() });
  const removing = await asked(`remove ci ${id}`);
  assert.match(
    removing.stderr,
    /^jwt, last used: \S.*\nThis removes the proof proof_\w{26} for good: programs that use it are refused at once\. Go on\? /,
  );
  assert.doesNotMatch(removing.stderr, /never/);
  assert.equal((await asked(`disable ci ${id}`, 'y\n')).code, 0);
  for (const line of ['disable ci nothing', 'remove ci nothing', 'disable ci secret', 'remove ci secret']) {
    const { code, stdout, stderr } = await asked(line);
    assert.deepEqual([code, stdout], [1, ''], line);
    assert.match(stderr, /^kms: (?:the API key has no such proof|a secret cannot be disabled)[^\n]*\n$/, line);
  }
});

test('on 80 columns lists, things and questions fit', async () => {
  await using a = await around();
  const { d } = a;
  const subject = 'repo:acme/payroll-and-other-services:environment:production';
  const wide = [
    ...'apikey proof add ci jwt --issuer https://token.actions.githubusercontent.com'.split(' '),
    ...['--audience', 'https://kms.example', '--subject', subject, '--name', 'the pipeline of payroll'],
    ...['--claim', 'job_workflow_ref=acme/payroll/.github/workflows/deploy.yml@refs/heads/main'],
  ];
  const narrow = { ...tty, columns: 80 };
  const shown = [await d.kms(wide, { tty: narrow }), await d.kms('apikey proof add ci aws', { tty: narrow })];
  const [, id = ''] = /(proof_\w{26})/.exec(shown[0]?.stdout ?? '') ?? [];
  shown.push(
    await d.kms('apikey proof list ci', { tty: narrow }),
    await d.kms(`apikey proof remove ci ${id}`, { tty: narrow, stdin: typed('n\n') }),
    await d.kms(`apikey proof disable ci ${id}`, { tty: narrow, stdin: typed('n\n') }),
    await d.kms('apikey proof test ci', { tty: { stdout: true, stderr: true, columns: 80 }, stdin: 'x.y.z' }),
  );
  for (const { stdout, stderr } of shown) {
    for (const line of stripVTControlCharacters(stdout + stderr).split('\n')) {
      // A question stands in one line with the cursor behind it.
      assert.ok(line.length <= 80 || /^(?:[a-z]+ +)?\S+$/.test(line), line);
    }
  }
  assert.match(stripVTControlCharacters(shown[2]?.stdout ?? ''), /^PROOF +KIND /);
});

test('a client certificate is issued into a directory, whose key nobody else can read, or pinned from a file', async () => {
  await using d = await servedDesk();
  await d.kms('apikey create --account admin --name app --flag keyring.list --without-secret');
  const made = await d.kms('apikey proof add app certificate --issue --out client --days 30');
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stderr, /client\.crt, client\.key, ca\.crt and client\.p12 are in .*client\n$/);
  const file = (name: string) => d.path(`client/${name}`);
  assert.equal(statSync(file('client.key')).mode & 0o777, 0o600);
  const certificate = new X509Certificate(readFileSync(file('client.crt')));
  assert.ok(certificate.checkPrivateKey(createPrivateKey(readFileSync(file('client.key')))));
  assert.ok(certificate.verify(new X509Certificate(readFileSync(file('ca.crt'))).publicKey));
  assert.doesNotMatch(made.stdout, /PRIVATE KEY/);
  const passphrase = readFileSync(file('client.p12.password'), 'utf8').trimEnd();
  createSecureContext({ pfx: readFileSync(file('client.p12')), passphrase });
  for (const secret of ['client.p12', 'client.p12.password']) assert.equal(statSync(file(secret)).mode & 0o777, 0o600);
  assert.match((await d.kms('apikey proof add app certificate --issue --out client')).stderr, /client\.crt/);
  await d.kms('apikey create --account admin --name other --flag keyring.list');
  const pinned = await d.kms('apikey proof add other certificate --file client/client.crt');
  assert.equal(pinned.code, 1, 'its key proves another API key');
  for (const [line, why] of [
    ['certificate', /expected --file CERT/],
    ['certificate --issue', /--out is missing/],
    ['certificate --ca client/ca.crt', /--san is missing/],
    ['certificate --file client/client.crt --days 3', /--days goes with --issue/],
    ['jwt --issue --out x', /--issue is for proofs of the kind certificate/],
    ['aws --ca client/ca.crt', /--ca is for proofs of the kinds jwt and certificate/],
  ] as const) {
    const { code, stderr } = await d.kms(`apikey proof add other ${line}`);
    assert.equal(code, 2, line);
    assert.match(stderr, why);
  }
  assert.equal((await d.kms('apikey proof add nobody certificate --issue --out fresh')).code, 1);
  assert.throws(() => statSync(d.path('fresh')), 'nothing is left of what failed');
  const one = await TestCertificate.alone(Date.now());
  const longer = await TestCertificate.alone(Date.now(), { keys: one.keys, notAfter: Date.now() + 60 * 86_400_000 });
  for (const [name, { pem }] of [
    ['one.crt', one],
    ['longer.crt', longer],
  ] as const)
    await writeFile(d.path(name), pem);
  await d.kms('apikey proof add other certificate --file one.crt --name app');
  const renewed = await d.kms('apikey proof add other certificate --file longer.crt --name new');
  assert.match(renewed.stderr, /^kms: the proof proof_\w+ is renewed, under the name app as before$/m);
  const trusted = await d.kms('apikey proof add other certificate --ca client/ca.crt --san dns:app.example.org');
  assert.equal(trusted.code, 0, trusted.stderr);
});

test('a certificate that another tenant has as an older proof is told of, as that one counts over KMIP', async () => {
  const tenants = [
    { name: 'default', hosts: ['*'] },
    { name: 'blue', hosts: ['blue.test'] },
  ];
  await using d = await servedDesk({ tenants });
  await writeFile(d.path('one.crt'), (await TestCertificate.alone(Date.now())).pem);
  for (const { name } of tenants) {
    await d.kms(`apikey create --account admin --name app --without-secret --tenant ${name}`);
    const added = await d.kms(`apikey proof add app certificate --file one.crt --tenant ${name}`);
    assert.equal(added.code, 0, added.stderr);
    const isTold = /^kms: another tenant has an older proof of the same certificates: over KMIP, /m.test(added.stderr);
    assert.equal(isTold, name === 'blue', added.stderr);
  }
});
