// Generates test/vectors/activity/approvals.json: exports in which acts were done with approval, each with one fault
// but the first ones, and the only verdict that a verifier may reach (docs/activity-export.md).
import { writeFileSync } from 'node:fs';
import { ed25519 } from '@noble/curves/ed25519.js';
import { p256 } from '@noble/curves/nist.js';
import { exportLine, signHead } from '../src/core/activity.ts';
import { signedChallenge } from '../src/core/approval-statement.ts';
import { concatBytes, toBase64, toBase64Url, toHex, utf8 } from '../src/crypto/bytes.ts';
import { canonicalJson } from '../src/crypto/canonical-json.ts';
import { sha256 } from '../src/crypto/hash.ts';
import { rsaSign } from '../src/crypto/managed/rsa.ts';
import { rsaKeyOfFactors } from '../src/crypto/managed/rsa-keys.ts';
import { longestWindow, type Verdict as Word, wordText } from '../src/model/approval-rules.ts';
import { startRsa } from '../src/platform/native-rsa.ts';
import { tenantKeys } from '../src/seal/tenant-keys.ts';
import { chainHash, genesisHash } from '../src/store/activity/chain.ts';
import type { Verdict } from './make-verdict-vectors.ts';

const minute = 60_000;
const day = 86_400_000;

const start = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const idOf = (prefix: string, n: number): string => `${prefix}_01kdyjk84e${String(n).padStart(16, '0')}`;
const tenant = idOf('tenant', 0);
const asker = idOf('apik', 1);
const [ada, bob, cy, dora, eve] = [1, 2, 3, 4, 5].map((n) => idOf('user', n)) as [
  string,
  string,
  string,
  string,
  string,
];

type Fields = Readonly<Record<string, unknown>>;

/** A record before it has its number and hash. */
interface Draft {
  readonly name: string;
  readonly action: string;
  readonly keyid: string;
  readonly ringname?: string;
  readonly props: Fields;
  readonly validAction?: boolean;
  readonly status?: number;
  readonly reporter?: string;
  /** Milliseconds after the record before. */
  readonly later?: number;
}

// Passkeys, one of each kind. Their secrets are known to all.
const secret = (n: number): Uint8Array => new Uint8Array(32).fill(n);

/** Bytes of a head of CBOR, RFC 8949 §3. */
function cborHead(major: number, argument: number): Uint8Array {
  if (argument < 24) return Uint8Array.of((major << 5) | argument);
  if (argument < 256) return Uint8Array.of((major << 5) | 24, argument);
  return Uint8Array.of((major << 5) | 25, argument >> 8, argument & 255);
}

function cose(fields: readonly (readonly [number, number | Uint8Array])[]): string {
  const item = (value: number | Uint8Array): Uint8Array => {
    if (typeof value !== 'number') return concatBytes(cborHead(2, value.length), value);
    return value < 0 ? cborHead(1, -1 - value) : cborHead(0, value);
  };
  return toBase64Url(concatBytes(cborHead(5, fields.length), ...fields.flat().map(item)));
}

interface Passkey {
  readonly factor: string;
  readonly publicKey: string;
  sign(message: Uint8Array): Uint8Array;
}

function es256(n: number): Passkey {
  const point = p256.getPublicKey(secret(n), false);
  const [x, y] = [point.subarray(1, 33), point.subarray(33)];
  return {
    factor: idOf('fact', n),
    publicKey: cose([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, x],
      [-3, y],
    ]),
    sign: (message) => p256.sign(message, secret(n), { format: 'der', lowS: false }),
  };
}

function edDsa(n: number): Passkey {
  return {
    factor: idOf('fact', n),
    publicKey: cose([
      [1, 1],
      [3, -8],
      [-1, 6],
      [-2, ed25519.getPublicKey(secret(n))],
    ]),
    sign: (message) => ed25519.sign(message, secret(n)),
  };
}

/** Factors of an RSA key of 2048 bits that is used for nothing else. */
const factors = [
  0xf50dae9e290cdfc1a1a209e71857bf3af01a927bcb545854d082dadbd41f9edc7b03de94684ff83e2c80a8ecf496900c5fecf0a98fdbffce7232cf6fee498b13709aeb322f205cbb87a1f144d8c0453ae895a94cba3569a3f156083830945be098fc79b89abf8dfd571330e04fce72f4d413d2d7f59ca2b7d12ad2195866be6bn,
  0xcdae682e9476dcbf5c4daebc584a520e272dad315d5bc8c0908ef31433518d62a8180fa5371c63b265b74fbf33c042b3226f75c2175e71df5a8c981b5c5ff7913c55fb9b789c206faa5df74107458f8c18430079f65a96acd702bbf445af50d8620dbdf4df2ed5ce8386921afac517f64802c22462599a21291d1072f4cec957n,
] as const;

function rs256(n: number): Passkey {
  startRsa();
  const key = rsaKeyOfFactors(...factors);
  const modulus = Uint8Array.fromHex((factors[0] * factors[1]).toString(16));
  return {
    factor: idOf('fact', n),
    publicKey: cose([
      [1, 3],
      [3, -257],
      [-1, modulus],
      [-2, Uint8Array.of(1, 0, 1)],
    ]),
    sign: (message) =>
      rsaSign('rsa-2048', key, { bytes: message, isDigest: false }, { padding: 'pkcs1v15', hash: 'sha2-256' }, secret),
  };
}

const passkeys = new Map([
  [ada, es256(1)],
  [cy, edDsa(3)],
  [dora, rs256(4)],
]);
const passkeyOf = (user: string): Passkey => passkeys.get(user) ?? es256(9);

interface Claims {
  readonly type?: string;
  readonly challenge?: string;
  readonly origin?: string;
  readonly rpId?: string;
  readonly flags?: number;
  /** The client data instead of those fields. */
  readonly clientData?: Uint8Array;
  /** Bytes of authenticator data. */
  readonly length?: number;
}

function assertion({ publicKey, sign, factor }: Passkey, challenge: string, claims: Claims = {}): Fields {
  const { type = 'webauthn.get', origin = 'https://kms.example', rpId = 'kms.example', flags = 5 } = claims;
  const said = { type, challenge: claims.challenge ?? challenge, origin, crossOrigin: false };
  const clientData = claims.clientData ?? utf8(JSON.stringify(said));
  const data = concatBytes(sha256(utf8(rpId)), Uint8Array.of(flags, 0, 0, 0, 7)).subarray(0, claims.length ?? 37);
  return {
    credentialId: toBase64Url(utf8(`credential ${factor}`)),
    publicKey,
    rpId,
    origin,
    clientDataJSON: toBase64Url(clientData),
    authenticatorData: toBase64Url(data),
    signature: toBase64Url(sign(concatBytes(data, sha256(clientData)))),
  };
}

interface Rule {
  readonly count: number;
  readonly expires: number | null;
  readonly id: string;
  readonly window: 'once' | number;
}

interface Asked {
  readonly n: number;
  readonly requester: string;
  readonly action: string;
  readonly recorded: string;
  readonly ring: string;
  readonly object: Fields | null;
  readonly further?: readonly Fields[];
  readonly rules: readonly Rule[];
}

const digestOf = (text: string): string => toBase64Url(sha256(utf8(text)));
const anything = digestOf('{}');

function statementOf({ n, rules, ...asked }: Asked, over: Fields = {}): string {
  return canonicalJson({
    at: start + n,
    body: null,
    further: [],
    ...asked,
    operation: 'anOperation',
    parameters: anything,
    request: idOf('appr', n),
    rules,
    tenant,
    v: 'kms/approval/1',
    ...over,
  });
}

const twoOnce: Rule = { count: 2, expires: null, id: idOf('rule', 1), window: 'once' };
const oneHour: Rule = { count: 1, expires: null, id: idOf('rule', 2), window: 3600 };
const payroll = { id: idOf('mkey', 1), name: 'payroll', type: 'managed-key' };

const deletion: Asked = {
  n: 1,
  requester: asker,
  action: 'key.payroll.delete',
  recorded: 'key.delete',
  ring: 'payroll',
  object: payroll,
  rules: [twoOnce],
};
const taking: Asked = {
  ...deletion,
  n: 2,
  requester: eve,
  action: 'key.payroll.export',
  recorded: 'key.export',
  // To be wrapped under another key.
  further: [
    { action: 'key.backups.read', object: idOf('mkey', 2) },
    { action: 'key.gone.read', object: null },
  ],
  rules: [oneHour],
};
const third: Asked = { ...deletion, n: 3 };
const fourth: Asked = { ...deletion, n: 4 };
const fifth: Asked = { ...deletion, n: 5, requester: cy };
const administrator: Asked = {
  ...deletion,
  n: 6,
  action: 'admin.make',
  recorded: 'user.update',
  ring: '',
  object: { id: bob, name: 'Bob "Λ"', type: 'user' },
  rules: [twoOnce, oneHour],
};

const about = (n: number): Fields => ({ id: idOf('appr', n), type: 'approval' });

function ask(asked: Asked, over: Fields = {}): Draft {
  const statement = statementOf(asked, over);
  const approval = { id: idOf('appr', asked.n), statement, digest: digestOf(statement), reason: 'it leaked' };
  return {
    name: `ask ${asked.n}`,
    action: 'approval.request',
    keyid: asked.requester,
    props: { object: about(asked.n), approval },
  };
}

type How = 'signed' | 'totp' | 'fresh';

function word(asked: Asked, user: string, verdict: Word = 'approve', how: How = 'signed'): Draft {
  const digest = digestOf(statementOf(asked));
  const key = passkeyOf(user);
  const factor = how === 'totp' ? { id: `fact_of_${user}`, kind: 'totp' } : { id: key.factor, kind: 'passkey' };
  const signed = how === 'signed' ? { assertion: assertion(key, signedChallenge(verdict, digest)) } : {};
  const approval = { id: idOf('appr', asked.n), digest, verdict, factor, ...signed };
  const action = `approval.${verdict}`;
  return { name: `${user} on ${asked.n}`, action, keyid: user, props: { object: about(asked.n), approval } };
}

interface Done {
  readonly use?: number;
  readonly words: readonly (readonly string[])[];
  readonly later?: number;
}

function act(asked: Asked, { use = 1, words, later }: Done): Draft {
  const rules = asked.rules.map(({ count, id, window }, n) => ({ count, id, window, words: words[n] }));
  const { further } = asked;
  const digest = digestOf(statementOf(asked));
  const approval = { id: idOf('appr', asked.n), digest, use, ...(further && { further }), rules };
  const { recorded: action, requester: keyid, ring: ringname, object } = asked;
  const props = { ...(object && { object }), approval };
  return { name: `act ${asked.n}.${use}`, action, keyid, ringname, props, ...(later !== undefined && { later }) };
}

function ruleMade(rule: Rule, approvers: Fields, name: string): Draft {
  const { count, expires, window, id } = rule;
  const terms = {
    actions: ['key.*'],
    objects: ['*'],
    approvers,
    count,
    mode: 'ask',
    window,
    breakers: [cy],
    expires,
  };
  const object = { id, name, type: 'approval-rule' };
  return { name, action: 'approval.rule', keyid: eve, props: { object, changed: ['actions'], rule: terms } };
}

/** The change of a rule, with what its record says of the words for it. */
function ruleChanged(rule: Rule, approvers: Fields, name: string, { props }: Pick<Draft, 'props'>): Draft {
  const draft = ruleMade(rule, approvers, name);
  return { ...draft, props: { ...draft.props, approval: props.approval } };
}

function ruleDeleted({ id }: Rule, name: string): Draft {
  return { name, action: 'approval.rule', keyid: eve, props: { object: { id, type: 'approval-rule' } } };
}

function glassBroken(n: number, more: Fields): Draft {
  const approval = { glass: idOf('glass', n), action: 'key.payroll.delete', reason: 'at night', ...more };
  const object = { id: idOf('glass', n), type: 'broken-glass' };
  return {
    name: `glass ${n}`,
    action: 'approval.break-glass',
    keyid: n === 1 ? cy : 'local',
    props: { object, approval },
  };
}

function actByGlass(n: number, keyid: string, more: Fields): Draft {
  const approval = { glass: idOf('glass', n), reason: 'at night', ...more };
  return {
    name: `act by glass ${n}`,
    action: 'key.delete',
    keyid,
    ringname: 'payroll',
    props: { object: payroll, approval },
  };
}

/** An act on a request for which the glass was broken. */
function onBroken(asked: Asked): Draft {
  const { props, ...draft } = act(asked, { words: [[]] });
  const approval = { ...(props.approval as Fields), broken: true };
  return { ...draft, name: 'act by glass 1', props: { ...props, approval } };
}

const { assertion: byCy, factor: factorOfCy } = word(fifth, cy, 'break-glass').props.approval as Fields;
const history: readonly Draft[] = [
  { name: 'made', action: 'key.create', keyid: 'local', ringname: 'payroll', props: { object: payroll } },
  ruleMade(twoOnce, { users: [ada, bob, dora] }, 'two of three'),
  ruleMade(oneHour, { flag: 'approval.give' }, 'one for an hour'),
  ask(deletion),
  {
    name: 'refused',
    action: 'key.delete',
    keyid: asker,
    ringname: 'payroll',
    validAction: false,
    status: 403,
    props: { approval: { id: idOf('appr', 1) } },
  },
  word(deletion, ada),
  word(deletion, bob, 'approve', 'totp'),
  act(deletion, { words: [[ada, bob]] }),
  ask(taking),
  word(taking, cy),
  act(taking, { words: [[cy]] }),
  act(taking, { use: 2, words: [[cy]], later: 3_590_000 }),
  ask(third),
  word(third, dora, 'deny'),
  ask(fourth),
  {
    name: 'withdrawn',
    action: 'approval.withdraw',
    keyid: asker,
    props: { object: about(4), approval: { id: idOf('appr', 4) } },
  },
  ask(fifth),
  glassBroken(1, { id: idOf('appr', 5), factor: factorOfCy, assertion: byCy }),
  onBroken(fifth),
  actByGlass(2, 'local', {}),
  glassBroken(2, {}),
  ask(administrator),
  word(administrator, dora),
  word(administrator, bob, 'approve', 'fresh'),
  act(administrator, { words: [[dora, bob], [dora]] }),
  {
    name: 'claimed by a program',
    action: 'app.delete',
    keyid: asker,
    reporter: asker,
    props: { approval: { id: 'none', use: 7, rules: [] } },
  },
];

interface Exported {
  readonly text: string;
  readonly hashes: readonly Uint8Array[];
}

/** Lines with hashes that fit, whatever the records say. */
function exported(drafts: readonly Draft[]): Exported {
  let createdAt = start;
  const hashes = [genesisHash()];
  const lines = drafts.map(({ name: _, later = 1000, ...draft }, index) => {
    createdAt += later;
    const seq = index + 1;
    const usual = { id: idOf('act', seq), createdAt, ringname: '', validAction: true, status: 200 };
    const line = canonicalJson({ ...usual, ...draft, seq });
    hashes.push(chainHash(hashes[index] ?? genesisHash(), line));
    return exportLine(line, toBase64Url(hashes[seq] ?? genesisHash()));
  });
  return { text: lines.join(''), hashes };
}

const encoded = (text: string): string => toBase64(utf8(text));
const numberOf = (name: string, drafts = history): number => {
  const at = drafts.findIndex((each) => each.name === name);
  if (at < 0) throw new Error(`there is no record ${name}`);
  return at + 1;
};
const fingerprint = (user: string): string =>
  toHex(sha256(Uint8Array.fromBase64(passkeyOf(user).publicKey, { alphabet: 'base64url' })));

/** A verdict with the lines that a verifier prints of the approvals. */
export interface ApprovalVerdict extends Verdict {
  readonly approvals?: readonly string[];
}

const verdicts: ApprovalVerdict[] = [];
const all = exported(history);
const only = 'the word of the appliance only';
const byGlass = [
  `record ${numberOf('act by glass 1')}: key.delete by ${cy}, WITHOUT APPROVAL, by broken glass ${idOf('glass', 1)}`,
  `record ${numberOf('act by glass 2')}: key.delete by local, WITHOUT APPROVAL, by broken glass ${idOf('glass', 2)}`,
];
const administratorMade = [
  `record ${numberOf('act 6.1')}: user.update by ${asker}, approved as ${idOf('appr', 6)}`,
  `  by ${dora} in record ${numberOf(`${dora} on 6`)}: signed by the passkey ${fingerprint(dora)}`,
  `  by ${bob} in record ${numberOf(`${bob} on 6`)}: ${only}`,
];
verdicts.push({
  name: 'everything as it should be',
  export: encoded(all.text),
  valid: true,
  upTo: history.length,
  approvals: [
    'done with approval: 4',
    `record ${numberOf('act 1.1')}: key.delete by ${asker}, approved as ${idOf('appr', 1)}`,
    `  by ${ada} in record ${numberOf(`${ada} on 1`)}: signed by the passkey ${fingerprint(ada)}`,
    `  by ${bob} in record ${numberOf(`${bob} on 1`)}: ${only}`,
    `record ${numberOf('act 2.1')}: key.export by ${eve}, approved as ${idOf('appr', 2)}`,
    `  by ${cy} in record ${numberOf(`${cy} on 2`)}: signed by the passkey ${fingerprint(cy)}`,
    ...administratorMade,
    ...byGlass,
  ],
});

const keys = tenantKeys(new Map([[1, secret(7)]]));
const since = numberOf('act 2.1');
const head = (id: string, { hashes } = all, seq = since): string => {
  const place = { seq, hash: toBase64Url(hashes[seq] ?? genesisHash()) };
  return encoded(JSON.stringify(signHead({ id, name: 'blue', limits: {}, keys }, place, start + 60_000)));
};
const after = (seq: number): string => all.text.split('\n').slice(seq).join('\n');
const later = after(since);
const betweenGlass = numberOf('act by glass 2') - 1;
verdicts.push(
  {
    name: 'asked for before the export begins',
    export: encoded(later),
    head: head(tenant),
    valid: true,
    upTo: history.length,
    approvals: [
      'done with approval: 2',
      ...administratorMade,
      '1 of them were asked for before this export begins, and were not checked',
      ...byGlass,
    ],
  },
  {
    name: 'begins between breaking the glass and its act',
    export: encoded(after(betweenGlass)),
    head: head(tenant, all, betweenGlass),
    valid: true,
    upTo: history.length,
    approvals: ['done with approval: 1', ...administratorMade, ...byGlass.slice(1)],
  },
  {
    name: 'a statement of another tenant than the head',
    export: encoded(later),
    head: head(idOf('tenant', 1)),
    valid: false,
    record: numberOf('ask 3'),
  },
);

/**
 * A case whose record `at`, by its name in the changed history, is what a verifier must name; none: it is valid. The
 * export ends there, or with the record `last`, or with none if it has to be `whole`.
 */
function changed(
  name: string,
  change: (drafts: readonly Draft[]) => readonly Draft[],
  at?: string,
  last?: string,
): void {
  const drafts = change(history);
  const record = at === undefined ? undefined : numberOf(at, drafts);
  const count = last === undefined ? (record ?? 8) : last === 'whole' ? drafts.length : numberOf(last, drafts);
  const kept = drafts.slice(0, count);
  const { text } = exported(kept);
  const verdict = record === undefined ? { valid: true, upTo: kept.length } : { valid: false, record };
  verdicts.push({ name, export: encoded(text), ...verdict });
}

const edited =
  (name: string, edit: (draft: Draft) => Draft) =>
  (drafts: readonly Draft[]): Draft[] => {
    const at = numberOf(name, drafts) - 1;
    return drafts.with(at, edit(drafts[at] as Draft));
  };

const inserted =
  (before: string, ...more: readonly Draft[]) =>
  (drafts: readonly Draft[]): readonly Draft[] =>
    drafts.toSpliced(numberOf(before, drafts) - 1, 0, ...more);

const delayed = (name: string, later: number) => edited(name, (draft) => ({ ...draft, later }));

/** Changes, one after the other. */
const both =
  (...changes: readonly ((drafts: readonly Draft[]) => readonly Draft[])[]) =>
  (drafts: readonly Draft[]): readonly Draft[] =>
    changes.reduce((before, change) => change(before), drafts);

const dropped = (name: string) => (drafts: readonly Draft[]) => drafts.filter((each) => each.name !== name);

const movedTo = (name: string, before: string) => (drafts: readonly Draft[]) => {
  const rest = dropped(name)(drafts);
  return rest.toSpliced(numberOf(before, rest) - 1, 0, drafts[numberOf(name) - 1] as Draft);
};

/** The record with other fields in its `props.approval`. */
const said = (name: string, over: Fields | ((approval: Fields) => Fields)) =>
  edited(name, (draft) => {
    const approval = draft.props.approval as Fields;
    return {
      ...draft,
      props: { ...draft.props, approval: { ...approval, ...(typeof over === 'function' ? over(approval) : over) } },
    };
  });

/** The act with other fields in the first of its rules. */
const counted = (name: string, over: Fields) =>
  said(name, ({ rules }) => ({ rules: (rules as Fields[]).with(0, { ...(rules as Fields[])[0], ...over }) }));

const signedBy = (user: string, passkey: Passkey, claims?: Claims, over: Fields = {}) =>
  said(`${user} on 1`, ({ digest, factor }) => ({
    factor: { ...(factor as Fields), kind: 'passkey' },
    assertion: { ...assertion(passkey, String(digest), claims), ...over },
  }));

const withoutFurther = ({ statement }: Fields): Fields => {
  const { further: _, ...rest } = JSON.parse(String(statement));
  const text = canonicalJson(rest);
  return { statement: text, digest: digestOf(text) };
};

/** Props of an act for which the glass was broken at the machine. */
const byLocal = { approval: { glass: idOf('glass', 2), reason: 'at night' } };

const [adaOn1, bobOn1] = [`${ada} on 1`, `${bob} on 1`];

// Requests.
changed('a word without its request', dropped('ask 1'), adaOn1);
changed(
  'an act without its request',
  (drafts) => dropped(bobOn1)(dropped(adaOn1)(dropped('ask 1')(drafts))),
  'act 1.1',
);
changed('a request after a word on it', movedTo('ask 1', bobOn1), adaOn1);
changed('a request twice', (drafts) => drafts.toSpliced(5, 0, { ...ask(deletion), name: 'again' }), 'again');
changed('a statement with another digest', said('ask 1', { digest: anything }), 'ask 1');
changed(
  'a statement of somebody else',
  edited('ask 1', (draft) => ({ ...draft, keyid: eve })),
  'ask 1',
);
changed(
  'a statement of another request',
  edited('ask 1', () => ask(deletion, { request: idOf('appr', 9) })),
  'ask 1',
);
changed(
  'a record about another request',
  edited('ask 1', (draft) => ({ ...draft, props: { ...draft.props, object: about(9) } })),
  'ask 1',
);
changed(
  'a statement of another version',
  edited('ask 1', () => ask(deletion, { v: 'kms/approval/2' })),
  'ask 1',
);
changed(
  'a statement of another tenant',
  edited('ask 2', () => ask(taking, { tenant: idOf('tenant', 1) })),
  'ask 2',
);
changed(
  'a statement without an object',
  edited('ask 1', () => ask(deletion, { object: 'payroll' })),
  'ask 1',
);
changed('a statement that is no JSON', said('ask 1', { statement: '{', digest: digestOf('{') }), 'ask 1');
changed(
  'a statement of 501 brackets',
  edited('ask 1', () => ask(deletion, { rules: Array(499).fill([]) })),
  'ask 1',
);
changed('no statement', said('ask 1', { statement: null }), 'ask 1');

// Words.
changed('a word on another digest', said(adaOn1, { digest: anything }), adaOn1);
changed(
  'a word of who asked',
  edited(bobOn1, (draft) => ({ ...draft, keyid: asker })),
  bobOn1,
);
changed('a word that its action does not say', said(adaOn1, { verdict: 'deny' }), adaOn1);
changed(
  'a second word of one user',
  (drafts) => drafts.toSpliced(6, 0, { ...word(deletion, ada), name: 'again' }),
  'again',
);
changed('a word without a factor', said(adaOn1, { factor: null }), adaOn1);
changed('a word with a recovery code', said(bobOn1, { factor: { id: 'fact_x', kind: 'recovery-code' } }), bobOn1);
changed(
  'a word after the request was denied',
  (drafts) => drafts.toSpliced(14, 0, { ...word(third, ada), name: 'late' }),
  'late',
);
changed(
  'a word after the request was withdrawn',
  (drafts) => drafts.toSpliced(16, 0, { ...word(fourth, ada), name: 'late' }),
  'late',
);
changed('a refused word, which is none', (drafts) =>
  drafts.toSpliced(5, 0, { ...word(third, eve), name: 'refused word', status: 403 }),
);
changed('a withdrawal of no request', dropped('ask 4'), 'withdrawn');

// Assertions.
changed('an assertion over another digest', signedBy(ada, passkeyOf(ada), { challenge: anything }), adaOn1);
changed(
  'an assertion by another key',
  signedBy(ada, es256(2), undefined, { publicKey: passkeyOf(ada).publicKey }),
  adaOn1,
);
changed(
  'a passkey with another key than before',
  said(`${dora} on 6`, ({ digest }) => ({ assertion: assertion(es256(2), String(digest)) })),
  `${dora} on 6`,
);
changed(
  'one bit of the signature',
  signedBy(ada, passkeyOf(ada), undefined, { signature: toBase64Url(secret(3)) }),
  adaOn1,
);
changed('an assertion of a registration', signedBy(ada, passkeyOf(ada), { type: 'webauthn.create' }), adaOn1);
changed('a user who was not verified', signedBy(ada, passkeyOf(ada), { flags: 1 }), adaOn1);
changed('a user who was not present', signedBy(ada, passkeyOf(ada), { flags: 4 }), adaOn1);
changed('a page elsewhere', signedBy(ada, passkeyOf(ada), { origin: 'https://kms.example.evil' }), adaOn1);
changed(
  'a page at a name that ends alike',
  signedBy(ada, passkeyOf(ada), { origin: 'https://evilkms.example' }),
  adaOn1,
);
changed('a page below the host', signedBy(ada, passkeyOf(ada), { origin: 'https://eu.kms.example:8443' }));
changed('an RP without a name', signedBy(ada, passkeyOf(ada), { rpId: '' }), adaOn1);
changed(
  'another origin than was signed',
  signedBy(ada, passkeyOf(ada), undefined, { origin: 'https://eu.kms.example' }),
  adaOn1,
);
changed('another RP than was signed', signedBy(ada, passkeyOf(ada), undefined, { rpId: 'example' }), adaOn1);
changed('authenticator data that is cut', signedBy(ada, passkeyOf(ada), { length: 36 }), adaOn1);
changed('client data that is no JSON', signedBy(ada, passkeyOf(ada), { clientData: utf8('{') }), adaOn1);
changed('client data with a byte order mark', signedBy(ada, passkeyOf(ada), { clientData: withMark() }), adaOn1);
changed('padding in base64url', signedBy(ada, passkeyOf(ada), undefined, { credentialId: 'eA==' }));
changed(
  'a public key with padding',
  signedBy(ada, passkeyOf(ada), undefined, { publicKey: `${passkeyOf(ada).publicKey}=` }),
  adaOn1,
);
changed('an assertion without its key', signedBy(ada, passkeyOf(ada), undefined, { publicKey: null }), adaOn1);
changed(
  'an assertion of an app with codes',
  said(bobOn1, ({ digest }) => ({ assertion: assertion(es256(2), String(digest)) })),
  bobOn1,
);
changed('an assertion of null', said(adaOn1, { assertion: null }), adaOn1);
for (const [name, key] of oddKeys()) {
  changed(`a key: ${name}`, signedBy(ada, { ...passkeyOf(ada), publicKey: key }), adaOn1);
}

// Acts.
changed('an act without a word', dropped(adaOn1), 'act 1.1');
changed('an act before its last word', movedTo('act 1.1', bobOn1), 'act 1.1');
changed('a count that was not reached', counted('act 1.1', { words: [ada] }), 'act 1.1');
changed('a count that is not the rule’s', counted('act 1.1', { count: 1, words: [ada] }), 'act 1.1');
changed('a window that is not the rule’s', counted('act 1.1', { window: 86_400 }), 'act 1.1');
changed('a rule that nobody made', dropped('two of three'), 'ask 1');
changed(
  'a rule that was changed since',
  inserted('act 1.1', ruleChanged({ ...twoOnce, count: 3 }, { users: [ada] }, 'stricter', actByGlass(2, eve, {}))),
  'act 1.1',
);
changed(
  'a rule that was deleted',
  inserted('act 1.1', { ...ruleDeleted(twoOnce, 'gone'), props: { ...ruleDeleted(twoOnce, '').props, ...byLocal } }),
  'act 1.1',
);
changed(
  'a word of one who is no approver',
  edited('two of three', () => ruleMade(twoOnce, { users: [ada, dora] }, 'two of three')),
  'act 1.1',
);
changed('one user counted twice', counted('act 1.1', { words: [ada, ada] }), 'act 1.1');
changed('the word of who asked counted', counted('act 1.1', { words: [ada, asker] }), 'act 1.1');
changed(
  'a denial counted',
  (drafts) => drafts.toSpliced(14, 0, { ...act(third, { words: [[dora]] }), name: 'act on denied' }),
  'act on denied',
);
changed(
  'an act after a withdrawal',
  (drafts) =>
    drafts
      .toSpliced(15, 0, word(fourth, ada), word(fourth, dora))
      .toSpliced(18, 0, act(fourth, { words: [[ada, dora]] })),
  'act 4.1',
);
changed(
  'an act of somebody else',
  edited('act 1.1', (draft) => ({ ...draft, keyid: eve })),
  'act 1.1',
);
changed(
  'another act',
  edited('act 1.1', (draft) => ({ ...draft, action: 'key.export' })),
  'act 1.1',
);
changed(
  'an act on another ring',
  edited('act 1.1', (draft) => ({ ...draft, ringname: 'sales' })),
  'act 1.1',
);
changed('a statement without further things', said('ask 2', withoutFurther), 'ask 2');
changed(
  'a statement whose further thing has no id',
  edited('ask 2', () => ask(taking, { further: [{ action: 'key.backups.read', object: '' }] })),
  'ask 2',
);
for (const [what, further] of [
  ['without its further things', undefined],
  ['with fewer further things', taking.further?.slice(1)],
  ['on another further thing', taking.further?.map((each) => ({ ...each, object: idOf('mkey', 3) }))],
  ['that does something else to a further thing', taking.further?.map((each) => ({ ...each, action: 'key.delete' }))],
  ['whose further things are in another order', taking.further?.toReversed()],
  ['whose further things are none', null],
  ['whose further things leave out what they have none of', [taking.further?.[0], { action: 'key.gone.read' }]],
] as const) {
  changed(`an act ${what}`, said('act 2.1', { further }), 'act 2.1');
}
changed('an act on further things that nobody asked for', said('act 1.1', { further: taking.further }), 'act 1.1');
changed('an act on no further things, and says so', said('act 1.1', { further: [] }));
changed(
  'an act on another object',
  edited('act 6.1', (draft) => ({ ...draft, props: { ...draft.props, object: { id: eve, type: 'user' } } })),
  'act 6.1',
);
changed('an act over another digest', said('act 1.1', { digest: anything }), 'act 1.1');
changed(
  'once done twice',
  (drafts) => drafts.toSpliced(8, 0, { ...act(deletion, { use: 2, words: [[ada, bob]] }), name: 'again' }),
  'again',
);
changed(
  'the first use twice',
  (drafts) => drafts.toSpliced(11, 0, { ...act(taking, { words: [[cy]] }), name: 'again' }),
  'again',
);
changed('a use that was left out', said('act 2.2', { use: 3 }), 'act 2.2');
changed(
  'later than the window',
  edited('act 2.2', (draft) => ({ ...draft, later: 3_600_000 + minute })),
  'act 2.2',
);
changed('no rules', said('act 1.1', { rules: [] }), 'act 1.1');
changed('rules that are none', said('act 1.1', { rules: [null] }), 'act 1.1');
changed('a count of true', counted('act 1.1', { count: true, words: [ada] }), 'act 1.1');
changed('a count of 1.5', counted('act 1.1', { count: 1.5 }), 'act 1.1');
changed('words that are no texts', counted('act 1.1', { words: [ada, 7] }), 'act 1.1');
changed(
  'an act on a change of rules without words',
  (drafts) =>
    drafts.toSpliced(4, 0, {
      ...ruleMade(twoOnce, {}, 'loosened'),
      props: {
        ...ruleMade(twoOnce, {}, 'loosened').props,
        approval: { id: idOf('appr', 1), digest: digestOf(statementOf(deletion)), use: 1, rules: [] },
      },
    }),
  'loosened',
);

// Broken glass.
changed('an act on a request as if its glass were broken', said('act 1.1', { broken: true }), 'act 1.1');
changed(
  'an act with fewer words on a request whose glass was broken',
  said('act by glass 1', { broken: false }),
  'act by glass 1',
);
changed('glass broken for one and used for another', said('glass 1', { id: idOf('appr', 1) }), 'glass 1');
changed(
  'a request done twice by broken glass',
  (drafts) => drafts.toSpliced(19, 0, { ...(drafts[18] as Draft), name: 'again' }),
  'again',
);
changed('glass that no record tells of', dropped('glass 2'), 'act by glass 2', 'whole');
changed('one glass broken twice', (drafts) => [...drafts, { ...glassBroken(2, {}), name: 'again' }], 'again');
changed('glass broken for no request', said('glass 1', { id: idOf('appr', 9) }), 'glass 1');
changed(
  'glass with an assertion over another digest',
  said('glass 1', { assertion: assertion(passkeyOf(cy), anything) }),
  'glass 1',
);
changed('glass of no name', said('act by glass 2', { glass: null }), 'act by glass 2');

changed(
  'glass broken without a second factor',
  said('glass 1', ({ glass, id }) => ({ glass, id, factor: undefined, assertion: undefined })),
  'glass 1',
);
changed(
  'a request done a second time by broken glass',
  both(inserted('act by glass 2', { ...onBroken(fifth), name: 'again' }), said('again', { use: 2 })),
  'again',
);

// One verdict is no other: a passkey signs each with a challenge of its own.
const digestOn = (asked: Asked): string => digestOf(statementOf(asked));
/** A word whose passkey signed another challenge than its verdict has. */
function signedAs(asked: Asked, user: string, verdict: Word, challenge: string): Draft {
  const draft = word(asked, user, verdict);
  const approval = { ...(draft.props.approval as Fields), assertion: assertion(passkeyOf(user), challenge) };
  return { ...draft, name: 'signed otherwise', props: { ...draft.props, approval } };
}
const swapped = (name: string, verdict: Word) =>
  both(
    edited(name, (draft) => ({ ...draft, action: `approval.${verdict}` })),
    said(name, { verdict }),
  );
changed('a denial that became an approval', swapped(`${dora} on 3`, 'approve'), `${dora} on 3`);
changed('an approval that became a denial', swapped(adaOn1, 'deny'), adaOn1);
for (const [name, verdict, challenge] of [
  ['broken glass that became an approval', 'approve', signedChallenge('break-glass', digestOn(fourth))],
  ['broken glass that became a denial', 'deny', signedChallenge('break-glass', digestOn(fourth))],
  ['a denial over the digest of the request', 'deny', digestOn(fourth)],
  ['an approval that signed a word', 'approve', digestOf(wordText('approve' as 'deny', digestOn(fourth)))],
  ['a denial of another request', 'deny', signedChallenge('deny', digestOn(third))],
  ['an approval of another request', 'approve', digestOn(third)],
] as const) {
  changed(name, inserted('withdrawn', signedAs(fourth, dora, verdict, challenge)), 'signed otherwise');
}
for (const [name, verdict] of [
  ['an approval that broke the glass', 'approve'],
  ['a denial that broke the glass', 'deny'],
] as const) {
  const byThat = assertion(passkeyOf(cy), signedChallenge(verdict, digestOn(fifth)));
  changed(name, said('glass 1', { assertion: byThat }), 'glass 1');
}

// A second factor belongs to one user.
const own = passkeyOf(ada);
changed('one factor of two users', said(bobOn1, { factor: { id: own.factor, kind: 'totp' } }), bobOn1);
changed('one passkey of two users', (drafts) => oneKey(drafts), bobOn1);
changed(
  'one credential of two users',
  said(bobOn1, ({ digest }) => ({
    factor: { id: idOf('fact', 2), kind: 'passkey' },
    assertion: { ...assertion(es256(2), String(digest)), credentialId: toBase64Url(utf8(`credential ${own.factor}`)) },
  })),
  bobOn1,
);
changed(
  'a word altered to another user, whose passkey signs later',
  both(
    edited(`${cy} on 2`, (draft) => ({ ...draft, keyid: bob })),
    counted('act 2.1', { words: [bob] }),
    counted('act 2.2', { words: [bob] }),
  ),
  'glass 1',
);
changed(
  'a denial altered to another user',
  edited(`${dora} on 3`, (draft) => ({ ...draft, keyid: ada })),
  `${dora} on 6`,
);
changed(
  'broken glass altered to another user',
  edited('glass 1', (draft) => ({ ...draft, keyid: ada })),
  'glass 1',
);

// The rules that approvers signed.
changed('a rule of the statement left out', said('act 6.1', ruleLeftOut), 'act 6.1');
changed(
  'another rule than that of the statement',
  said('act 1.1', { rules: [{ count: 1, id: oneHour.id, window: 3600, words: [ada] }] }),
  'act 1.1',
);
changed(
  'a rule of the statement that is made again with the same terms',
  both(
    inserted('act 6.1', ruleChanged(twoOnce, { users: [dora, bob] }, 'made again', actByGlass(2, eve, {}))),
    said('act 6.1', ruleLeftOut),
  ),
  undefined,
  'whole',
);
changed(
  'a rule changed without words',
  inserted('act 6.1', ruleMade({ ...twoOnce, count: 1 }, { users: [ada] }, 'loosened')),
  'loosened',
);
changed('a rule deleted without words', inserted('act 6.1', ruleDeleted(twoOnce, 'gone')), 'gone');
const change: Asked = {
  ...deletion,
  n: 7,
  requester: eve,
  action: 'approval.rule',
  recorded: 'approval.rule',
  ring: '',
  object: { id: twoOnce.id, name: 'two of three', type: 'approval-rule' },
};
const wordsForChange = [ask(change), word(change, ada), word(change, bob, 'approve', 'totp')];
const changeDone = act(change, { words: [[ada, bob]] });
const fewer = { ...twoOnce, count: 1 };
changed(
  'a rule changed with its words, which the act needs no more as it was',
  both(
    inserted('act 6.1', ...wordsForChange, ruleChanged(fewer, { users: [dora] }, 'loosened', changeDone)),
    counted('act 6.1', { count: 1, words: [dora] }),
  ),
  undefined,
  'whole',
);
const changeUnderOther: Asked = { ...change, rules: [oneHour] };
changed(
  'a rule changed with the words for another one',
  inserted(
    'act 6.1',
    ask(changeUnderOther),
    word(changeUnderOther, ada),
    ruleChanged(fewer, { users: [dora] }, 'loosened', act(changeUnderOther, { words: [[ada]] })),
  ),
  'loosened',
);
const soon: Rule = { ...twoOnce, expires: start + 30 * minute + 3_600_000 };
const underSoon: Asked = { ...administrator, rules: [soon, oneHour] };
const expiring = (late: number) =>
  both(
    (drafts: readonly Draft[]) => drafts.filter(({ name }) => !/ [1345](?:\.\d)?$|^withdrawn$|^act by/.test(name)),
    edited('two of three', () => ruleMade(soon, { users: [ada, bob, dora] }, 'two of three')),
    edited('ask 6', () => ask(underSoon)),
    edited(`${dora} on 6`, () => word(underSoon, dora)),
    edited(`${bob} on 6`, () => word(underSoon, bob, 'approve', 'fresh')),
    edited('act 6.1', () => ({ ...act(underSoon, { words: [[dora, bob], [dora]] }), later: late })),
    said('act 6.1', ruleLeftOut),
  );
changed('a rule left out that expired', expiring(40 * minute), undefined, 'whole');
changed('a rule left out before it expires', expiring(10 * minute), 'act 6.1');
changed(
  'an expired rule changed without words',
  both(expiring(40 * minute), (drafts) => [...drafts, ruleMade(fewer, { users: [ada] }, 'loosened')]),
  undefined,
  'whole',
);
for (const [name, rules] of [
  ['no rule', []],
  ['a rule that is not there', [{ ...twoOnce, id: idOf('rule', 9) }]],
  ['another count', [{ ...twoOnce, count: 1 }]],
  ['another window', [{ ...twoOnce, window: 3600 }]],
  ['another end of a rule', [{ ...twoOnce, expires: start + day }]],
  ['a rule without an end', [{ count: 2, id: twoOnce.id, window: 'once' }]],
  ['a rule twice', [twoOnce, twoOnce]],
  ['rules that are texts', [twoOnce.id]],
] as const) {
  changed(
    `a statement of ${name}`,
    edited('ask 1', () => ask(deletion, { rules })),
    'ask 1',
  );
}
changed(
  'a statement without its time',
  edited('ask 1', () => ask(deletion, { at: null })),
  'ask 1',
);

// A window is never wider than what was signed.
const windowChanged = (asked: Asked, rule: Rule, name: string): readonly Draft[] => {
  const wanted: Asked = { ...change, object: { id: rule.id, name, type: 'approval-rule' }, rules: asked.rules };
  const given = asked.rules.map(({ count }) => [ada, bob].slice(0, count));
  const by = ruleChanged(rule, { users: [ada, bob, cy] }, name, act(wanted, { words: given }));
  return [ask(wanted), word(wanted, ada), word(wanted, bob, 'approve', 'totp'), by];
};
const wide: Rule = { ...oneHour, window: longestWindow };
changed(
  'a window that was widened after the word',
  both(
    inserted('act 2.2', ...windowChanged(taking, wide, 'widened')),
    counted('act 2.2', { window: longestWindow }),
    delayed('act 2.2', 2 * 3_600_000),
  ),
  'act 2.2',
);
changed(
  'a word for one time that became a window',
  both(
    inserted('act 1.1', ...windowChanged(deletion, { ...twoOnce, window: 3600 }, 'widened')),
    counted('act 1.1', { window: 3600 }),
    inserted('ask 2', { ...act(deletion, { use: 2, words: [[ada, bob]] }), name: 'again' }),
    counted('again', { window: 3600 }),
  ),
  'again',
);
changed(
  'a window that was widened, used in the narrow one',
  both(
    inserted('act 2.2', ...windowChanged(taking, wide, 'widened')),
    counted('act 2.2', { window: longestWindow }),
    delayed('act 2.2', minute),
  ),
  undefined,
  'act 2.2',
);

// A request waits for a day, and what was granted for one time has to be done within a day.
changed('a word just within the day', delayed(adaOn1, day - minute), undefined, 'act 1.1');
changed('a word after the day', delayed(adaOn1, day + 2 * minute), adaOn1);
changed('a last word after the day', delayed(bobOn1, day + 2 * minute), bobOn1);
changed('a denial after the day', delayed(`${dora} on 3`, 2 * day), `${dora} on 3`);
changed('an act just within the day', delayed('act 1.1', day - minute), undefined, 'act 1.1');
changed('an act after the day', delayed('act 1.1', day + 2 * minute), 'act 1.1');
changed('glass broken after the day', delayed('glass 1', 2 * day), 'glass 1');
changed('an act by broken glass after the day', delayed('act by glass 1', day + 2 * minute), 'act by glass 1');
changed(
  'the last word long after the first, and the act long after both',
  both(delayed(bobOn1, day - minute), delayed('act 1.1', day - minute)),
  undefined,
  'act 1.1',
);

// Exports that begin later than the log: a statement stands in for the record of its rules.
function changedLater(name: string, change: (drafts: readonly Draft[]) => readonly Draft[], at?: string): void {
  const drafts = change(history);
  const record = at === undefined ? undefined : numberOf(at, drafts);
  const { text, hashes } = exported(drafts.slice(0, record));
  const lines = text.split('\n').slice(since).join('\n');
  const verdict = record === undefined ? { valid: true, upTo: drafts.length } : { valid: false, record };
  verdicts.push({ name, export: encoded(lines), head: head(tenant, { text, hashes }), ...verdict });
}
changedLater('begun later: a rule of the statement left out', said('act 6.1', ruleLeftOut), 'act 6.1');
changedLater(
  'begun later: a count that is not that of the statement',
  counted('act 6.1', { count: 1, words: [dora] }),
  'act 6.1',
);
changedLater(
  'begun later: a second statement with other terms',
  edited('ask 6', () => ask(administrator, { rules: [{ ...twoOnce, count: 1 }, oneHour] })),
  'ask 6',
);
changedLater('begun later: a rule deleted without words', inserted('act 6.1', ruleDeleted(twoOnce, 'gone')), 'gone');
changedLater('begun later: a rule that no statement named, deleted without words', (drafts) => [
  ...drafts,
  ruleDeleted({ ...twoOnce, id: idOf('rule', 9) }, 'gone'),
]);
changedLater(
  'begun later: a word on a request from before, signed for something else',
  inserted('act 2.2', signedAs(taking, ada, 'approve', anything)),
  'signed otherwise',
);
changedLater(
  'begun later: a word on a request from before, with the passkey of another',
  inserted('act 2.2', { ...word(taking, dora), keyid: ada, name: 'altered' }),
  `${dora} on 3`,
);

/** The rules of an act without the first. */
function ruleLeftOut({ rules }: Fields): Fields {
  return { rules: (rules as Fields[]).slice(1) };
}

writeFileSync(
  new URL('../test/vectors/activity/approvals.json', import.meta.url),
  `[\n${verdicts.map((each) => JSON.stringify(each)).join(',\n')}\n]\n`,
);

function withMark(): Uint8Array {
  const client = { type: 'webauthn.get', challenge: digestOf(statementOf(deletion)), origin: 'https://kms.example' };
  return utf8(`\ufeff${JSON.stringify(client)}`);
}

/** Bob's word signed by the key of Ada's passkey, which he has under a name of his own. */
function oneKey(drafts: readonly Draft[]): readonly Draft[] {
  const own = { ...passkeyOf(ada), factor: idOf('fact', 2) };
  return said(bobOn1, ({ digest }) => ({
    factor: { id: own.factor, kind: 'passkey' },
    assertion: assertion(own, String(digest)),
  }))(drafts);
}

/** Public keys that no verifier takes for the one of ES256 that signed. */
function oddKeys(): readonly (readonly [string, string])[] {
  const point = p256.getPublicKey(secret(1), false);
  const [x, y] = [point.subarray(1, 33), point.subarray(33)];
  const whole = Uint8Array.fromBase64(passkeyOf(ada).publicKey, { alphabet: 'base64url' });
  return [
    ['none', ''],
    ['cut', toBase64Url(whole.subarray(0, -1))],
    ['with a byte behind it', toBase64Url(concatBytes(whole, Uint8Array.of(0)))],
    [
      'of another algorithm',
      cose([
        [1, 2],
        [3, -257],
        [-1, 1],
        [-2, x],
        [-3, y],
      ]),
    ],
    [
      'of another curve',
      cose([
        [1, 2],
        [3, -7],
        [-1, 2],
        [-2, x],
        [-3, y],
      ]),
    ],
    [
      'not on the curve',
      cose([
        [1, 2],
        [3, -7],
        [-1, 1],
        [-2, x],
        [-3, x],
      ]),
    ],
    [
      'with a label twice',
      cose([
        [1, 2],
        [3, -7],
        [-1, 1],
        [-2, x],
        [-3, y],
        [-3, y],
      ]),
    ],
    ['with a list', toBase64Url(concatBytes(whole.with(0, 0xa6), Uint8Array.of(4, 0x80)))],
    ['of indefinite length', toBase64Url(concatBytes(whole.with(0, 0xbf), Uint8Array.of(0xff)))],
    [
      'a coordinate with a zero in front',
      cose([
        [1, 2],
        [3, -7],
        [-1, 1],
        [-2, concatBytes(Uint8Array.of(0), x)],
        [-3, y],
      ]),
    ],
    [
      'Ed25519 of small order',
      cose([
        [1, 1],
        [3, -8],
        [-1, 6],
        [-2, Uint8Array.of(1, ...new Uint8Array(31))],
      ]),
    ],
    [
      'RSA of 1024 bits',
      cose([
        [1, 3],
        [3, -257],
        [-1, new Uint8Array(128).fill(255)],
        [-2, Uint8Array.of(1, 0, 1)],
      ]),
    ],
    [
      'RSA with the exponent 3',
      cose([
        [1, 3],
        [3, -257],
        [-1, new Uint8Array(256).fill(255)],
        [-2, Uint8Array.of(3)],
      ]),
    ],
  ];
}
