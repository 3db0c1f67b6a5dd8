// ApprovalCheck verifies from the records of an export alone that what was done with approval had it: the request, the
// words of enough others over its digest, signed by their passkeys where they are, and all of them before the act.
// The programs in docs/verify-activity do the same; docs/activity-export.md has the rules.
import { fromBase64Url, toBase64Url, toHex, utf8 } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import { isSignedChallenge, type KeptAssertion } from '../crypto/kept-assertion.ts';
import { isJsonObject, type JsonObject, jsonOf } from '../model/json.ts';

/** A word that counted for an act. */
interface CountedWord {
  readonly by: string;
  /** The record that gave it. */
  readonly record: number;
  /** SHA-256 in hex of the passkey's public key, if one signed; otherwise the word is the appliance's claim alone. */
  readonly passkey?: string;
}

interface ApprovedAct {
  readonly record: number;
  readonly action: string;
  readonly by: string;
  readonly request: string;
  readonly words: readonly CountedWord[];
}

interface BrokenGlass {
  readonly record: number;
  readonly action: string;
  readonly by: string;
  readonly glass: string;
}

export interface ApprovalFindings {
  /** Acts done with approval, and how many of them were asked for before the export begins, which cannot be checked. */
  readonly acts: number;
  readonly unchecked: number;
  /** The first act of each request. */
  readonly done: readonly ApprovedAct[];
  readonly broken: readonly BrokenGlass[];
}

interface Word {
  readonly record: number;
  readonly at: number;
  readonly approves: boolean;
  readonly factor: string;
  /** The credential's id and public key, if it is signed. */
  readonly assertion?: KeptAssertion;
}

interface Request {
  readonly digest: string;
  readonly requester: string;
  readonly recorded: string;
  readonly ring: string;
  readonly object: JsonObject | undefined;
  readonly words: Map<string, Word>;
  isOver: boolean;
  uses: number;
  /** The breaking of the glass for it. */
  glass?: string;
}

interface Rule {
  readonly count: unknown;
  readonly window: unknown;
  /** Ids of the approvers; undefined if a flag makes them. */
  readonly users: readonly unknown[] | undefined;
}

/** A record of the appliance's own, as far as approvals need it. */
interface OwnRecord {
  readonly seq: number;
  readonly createdAt: number;
  readonly action: string;
  readonly keyid: string;
  readonly ringname: unknown;
  readonly props: JsonObject;
}

interface Problem {
  readonly seq: number;
  readonly problem: string;
}

const assertionFields = [
  'credentialId',
  'publicKey',
  'rpId',
  'origin',
  'clientDataJSON',
  'authenticatorData',
  'signature',
] as const satisfies readonly (keyof KeptAssertion)[];

export class ApprovalCheck {
  /** The export begins with the first record of the log. */
  readonly #isWhole: boolean;
  #tenant: string | undefined;
  readonly #requests = new Map<string, Request>();
  readonly #rules = new Map<string, Rule>();
  /** Public keys by the id of the factor. */
  readonly #keys = new Map<string, string>();
  readonly #glass = new Set<string>();
  readonly #done: ApprovedAct[] = [];
  readonly #broken: BrokenGlass[] = [];
  #acts = 0;
  #unchecked = 0;

  constructor(isWhole: boolean, tenant?: string) {
    this.#isWhole = isWhole;
    this.#tenant = tenant;
  }

  /** Undefined if nothing was done with approval or by broken glass. */
  get findings(): ApprovalFindings | undefined {
    if (this.#acts === 0 && this.#broken.length === 0) return undefined;
    return { acts: this.#acts, unchecked: this.#unchecked, done: this.#done, broken: this.#broken };
  }

  /** Takes the next record's line; returns what is wrong with it, as a sentence without its subject. */
  see(line: string): string | undefined {
    if (!line.includes('"approval')) return undefined;
    const record = jsonOf(line);
    if (!isJsonObject(record) || !isOwn(record)) return undefined;
    const { action, props } = record;
    if (action === 'approval.rule') {
      const problem = this.#act(record);
      this.#seeRule(props);
      return problem;
    }
    const said = isJsonObject(props.approval) ? props.approval : undefined;
    if (!said) return undefined;
    if (action === 'approval.request') return this.#ask(record, said);
    if (action === 'approval.approve' || action === 'approval.deny') return this.#give(record, said);
    if (action === 'approval.withdraw' || action === 'approval.expire') return this.#end(said);
    if (action === 'approval.break-glass') return this.#breakGlass(said);
    return this.#act(record);
  }

  /** The problem that only the end of the export shows. */
  end(): Problem | undefined {
    const untold = this.#broken.find(({ glass }) => !this.#glass.has(glass));
    return untold && { seq: untold.record, problem: 'was done by broken glass that no record tells of' };
  }

  #seeRule({ object, rule }: JsonObject): void {
    if (!isJsonObject(object) || typeof object.id !== 'string') return;
    if (!isJsonObject(rule)) {
      this.#rules.delete(object.id);
      return;
    }
    const { count, window, approvers } = rule;
    const users = isJsonObject(approvers) && Array.isArray(approvers.users) ? approvers.users : undefined;
    this.#rules.set(object.id, { count, window, users });
  }

  #ask({ keyid, props }: OwnRecord, { id, statement, digest }: JsonObject): string | undefined {
    const unfit = 'has a statement that does not fit its digest or its record';
    if (!isWord(id) || typeof statement !== 'string' || !statement.isWellFormed()) return unfit;
    const said = objectIn(statement);
    if (!isWord(digest) || digestOf(statement) !== digest || !said) return unfit;
    const { v, request, requester, tenant, recorded, ring, object } = said;
    const about = isJsonObject(object) ? object : undefined;
    if (v !== 'kms/approval/1' || request !== id || requester !== keyid || Object(props.object).id !== id) return unfit;
    if (!isWord(tenant) || !isWord(recorded) || typeof ring !== 'string') return unfit;
    if (object !== null && !(about && isWord(about.id) && isWord(about.type))) return unfit;
    this.#tenant ??= tenant;
    if (tenant !== this.#tenant) return 'has a statement of another tenant';
    if (this.#requests.has(id)) return 'asks for approval under an id that is taken';
    const begun = { words: new Map(), isOver: false, uses: 0 };
    this.#requests.set(id, { digest, requester: keyid, recorded, ring, object: about, ...begun });
    return undefined;
  }

  /** The request with this id; a problem if it should be there; undefined if it was made before the export begins. */
  #requestOf(id: unknown): Request | 'none' | undefined {
    const request = typeof id === 'string' ? this.#requests.get(id) : undefined;
    return request ?? (this.#isWhole || typeof id !== 'string' ? 'none' : undefined);
  }

  #give({ seq, createdAt, action, keyid }: OwnRecord, said: JsonObject): string | undefined {
    const request = this.#requestOf(said.id);
    if (request === 'none') return 'gives a word on no request';
    if (!request) return undefined;
    const { digest, verdict, factor, assertion } = said;
    if (digest !== request.digest) return 'gives a word on another digest than that of the request';
    const approves = action === 'approval.approve';
    if (verdict !== (approves ? 'approve' : 'deny')) return 'gives another word than its action says';
    if (keyid === request.requester) return 'gives a word of who asked';
    if (request.isOver) return 'gives a word on a request that was over';
    if (request.words.has(keyid)) return 'gives a second word of one user';
    const factorId = factorOf(factor);
    if (factorId === undefined) return 'gives a word without a second factor';
    const signed = assertion === undefined ? undefined : this.#signed(request.digest, said.factor, assertion);
    if (signed === 'not') return 'has an assertion that does not verify';
    const word = { record: seq, at: createdAt, approves, factor: factorId };
    request.words.set(keyid, signed ? { ...word, assertion: signed } : word);
    if (!approves) request.isOver = true;
    return undefined;
  }

  /** The assertion, if the factor is a passkey, always with one key, and that key signed the digest. */
  #signed(digest: string, factor: unknown, assertion: unknown): KeptAssertion | 'not' {
    const id = factorOf(factor);
    if (id === undefined || Object(factor).kind !== 'passkey' || !isAssertion(assertion)) return 'not';
    const known = this.#keys.get(id) ?? assertion.publicKey;
    this.#keys.set(id, known);
    return known === assertion.publicKey && isSignedChallenge(assertion, digest) ? assertion : 'not';
  }

  #end({ id }: JsonObject): string | undefined {
    const request = this.#requestOf(id);
    if (request === 'none') return 'ends no request';
    if (request) request.isOver = true;
    return undefined;
  }

  #breakGlass({ glass, id, factor, assertion }: JsonObject): string | undefined {
    if (!isWord(glass) || this.#glass.has(glass)) return 'breaks the glass under an id that is taken';
    this.#glass.add(glass);
    const request = id === undefined ? undefined : this.#requestOf(id);
    if (request === 'none') return 'breaks the glass for no request';
    if (!request) return undefined;
    request.glass = glass;
    if (assertion === undefined) return undefined;
    return this.#signed(request.digest, factor, assertion) === 'not'
      ? 'has an assertion that does not verify'
      : undefined;
  }

  /** Takes the record of an act that was done with approval, or by broken glass. */
  #act(record: OwnRecord): string | undefined {
    const { seq, action, keyid, props } = record;
    const said = isJsonObject(props.approval) ? props.approval : {};
    if (said.glass !== undefined) {
      if (!isWord(said.glass)) return 'was done by broken glass that no record tells of';
      this.#broken.push({ record: seq, action, by: keyid, glass: said.glass });
      return undefined;
    }
    if (said.use === undefined) return undefined;
    this.#acts++;
    const request = this.#requestOf(said.id);
    if (request === 'none') return 'was done without a request';
    if (!request) {
      this.#unchecked++;
      return undefined;
    }
    const misfit = misfitOf(record, said, request);
    if (misfit !== undefined) return misfit;
    if (said.broken === true) return this.#actOnBroken(record, request);
    const problem = this.#miscount(record, said.rules, request);
    if (problem !== undefined) return problem;
    if (request.uses++ === 0) {
      this.#done.push({
        record: seq,
        action,
        by: keyid,
        request: String(said.id),
        words: countedIn(said.rules, request),
      });
    }
    return undefined;
  }

  /** Takes an act on a request for which the glass was broken before. */
  #actOnBroken({ seq, action, keyid }: OwnRecord, request: Request): string | undefined {
    if (request.glass === undefined) return 'was done by broken glass that no record tells of';
    request.uses++;
    this.#acts--;
    this.#broken.push({ record: seq, action, by: keyid, glass: request.glass });
    return undefined;
  }

  /** Why the words for an act's rules are not enough. */
  #miscount({ createdAt }: OwnRecord, rules: unknown, request: Request): string | undefined {
    if (!Array.isArray(rules) || rules.length === 0) return 'was done by no rule';
    let grantedAt = 0;
    for (const rule of rules.map(Object)) {
      const problem = this.#misruled(rule) ?? miscountOf(rule, request);
      if (problem !== undefined) return problem;
      grantedAt = Math.max(grantedAt, completedAt(rule, request));
    }
    for (const { window } of rules) {
      if (window === 'once' ? request.uses > 0 : !(createdAt <= grantedAt + window * 1000)) {
        return 'was done more often, or later, than was approved';
      }
    }
    return undefined;
  }

  /** Compares what the act says of a rule with what the rule's own record says. */
  #misruled({ id, count, window, words }: JsonObject): string | undefined {
    const unlike = 'counts words for another rule than there was';
    const isWindow = window === 'once' || (typeof window === 'number' && window > 0);
    if (!isWord(id) || !isWindow || !Number.isInteger(count) || Number(count) < 1 || !Array.isArray(words))
      return unlike;
    const rule = this.#rules.get(id);
    if (!rule) return this.#isWhole ? unlike : undefined;
    const areApprovers = words.every((user) => rule.users?.includes(user) ?? true);
    return rule.count === count && rule.window === window && areApprovers ? undefined : unlike;
  }
}

/** Records that others sent say what those claim, and those without success say what was not done. */
function isOwn(record: JsonObject): record is JsonObject & OwnRecord {
  const { reporter, validAction, status, action, keyid, props, seq, createdAt } = record;
  if (reporter !== undefined || !isJsonObject(props) || typeof action !== 'string') return false;
  const isAsked = action === 'approval.request';
  if (!isAsked && !(validAction === true && typeof status === 'number' && status < 400)) return false;
  return typeof keyid === 'string' && typeof seq === 'number' && typeof createdAt === 'number';
}

/** A name or an id as the appliance makes them. */
function isWord(value: unknown): value is string {
  return typeof value === 'string' && /^[!-~]{1,256}$/.test(value);
}

/** Maximum of brackets in a statement: deeper texts are read differently by other parsers. */
const mostBrackets = 500;

function objectIn(statement: string): JsonObject | undefined {
  if ((statement.match(/[[{]/g) ?? []).length > mostBrackets) return undefined;
  const value = jsonOf(statement);
  return isJsonObject(value) ? value : undefined;
}

function digestOf(statement: string): string {
  return toBase64Url(sha256(utf8(statement)));
}

function factorOf(factor: unknown): string | undefined {
  const { id, kind }: JsonObject = Object(factor);
  return isWord(id) && (kind === 'totp' || kind === 'passkey') ? id : undefined;
}

function isAssertion(value: unknown): value is KeptAssertion {
  return isJsonObject(value) && assertionFields.every((name) => typeof value[name] === 'string');
}

/** Why the act is not the one that was approved, or not in time. */
function misfitOf(
  { action, keyid, ringname, props }: OwnRecord,
  said: JsonObject,
  request: Request,
): string | undefined {
  if (said.digest !== request.digest) return 'was done over another digest than that of the request';
  const done: JsonObject = Object(props.object);
  const isSame = request.object?.type !== done.type || request.object?.id === done.id;
  const fits = keyid === request.requester && action === request.recorded && ringname === request.ring && isSame;
  if (!fits) return 'is not what was approved';
  if (request.isOver) return 'was done after the request was over';
  return said.use === request.uses + 1 ? undefined : 'was done more often, or later, than was approved';
}

function wordsIn(rule: JsonObject): readonly unknown[] {
  return Array.isArray(rule.words) ? rule.words : [];
}

function miscountOf(rule: JsonObject, { requester, words }: Request): string | undefined {
  const users = wordsIn(rule);
  if (users.includes(requester)) return 'counts the word of who asked';
  const given = users.map((user) => (typeof user === 'string' ? words.get(user) : undefined));
  if (given.some((word) => !word?.approves)) return 'counts a word that was not given before';
  const marks = [users, ...factorMarks(given)];
  if (marks.some((each) => new Set(each).size < each.length)) return 'counts one second factor twice';
  return users.length < Number(rule.count) ? 'was done with fewer words than it needs' : undefined;
}

/** Ids of the factors, and public keys and credentials of those that signed: each may be there once. */
function factorMarks(given: readonly (Word | undefined)[]): readonly (readonly string[])[] {
  const words = given.flatMap((word) => word ?? []);
  const assertions = words.flatMap(({ assertion }) => assertion ?? []);
  return [
    words.map(({ factor }) => factor),
    assertions.map(({ publicKey }) => publicKey),
    assertions.map(({ credentialId }) => credentialId),
  ];
}

/** When the word came that completed the count. */
function completedAt(rule: JsonObject, { words }: Request): number {
  const given = wordsIn(rule).flatMap((user) => words.get(String(user)) ?? []);
  const inOrder = given.sort((one, other) => one.record - other.record);
  return inOrder[Number(rule.count) - 1]?.at ?? 0;
}

function countedIn(rules: unknown, { words }: Request): CountedWord[] {
  const users = new Set((Array.isArray(rules) ? rules : []).flatMap((rule) => wordsIn(rule)).map(String));
  return [...users].flatMap((by) => {
    const { record, assertion } = words.get(by) ?? {};
    if (record === undefined) return [];
    const key = assertion && toHex(sha256(fromBase64Url(assertion.publicKey) ?? new Uint8Array()));
    return [key === undefined ? { by, record } : { by, record, passkey: key }];
  });
}
