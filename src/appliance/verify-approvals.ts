// ApprovalCheck verifies from the records of an export alone that what was done with approval had it: the request, the
// words of enough others over its digest, signed by their passkeys where they are, and all of them before the act.
// The programs in docs/verify-activity do the same; docs/activity-export.md has the rules.
import { signedChallenge } from '../core/approval-statement.ts';
import { fromBase64Url, toHex } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import { requestLasts } from '../model/approval-rules.ts';
import { isJsonObject, type JsonObject, jsonOf } from '../model/json.ts';
import { SecondFactors, type UsedFactor } from './verify-factors.ts';
import {
  isCount,
  isSameFurther,
  isWindow,
  isWord,
  readStatement,
  type StatedRule,
  type Statement,
} from './verify-statements.ts';

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
  readonly factor: UsedFactor;
}

interface Request {
  readonly digest: string;
  readonly statement: Statement;
  /** The rules of the statement, as they are known when it is asked. */
  readonly rules: ReadonlyMap<string, Rule>;
  readonly words: Map<string, Word>;
  isOver: boolean;
  uses: number;
  /** The breaking of the glass for it. */
  glass?: { readonly id: string; readonly at: number };
}

/** A rule from one record of it to the next, or for a log without its beginning as the first statement has it. */
interface Rule {
  readonly count: unknown;
  readonly window: unknown;
  readonly expires: unknown;
  /** Ids of the approvers; undefined if a flag makes them, or if it is not known. */
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

/** Milliseconds that may lie between a decision and the time of its record. */
const spare = 60_000;
const tooMuch = 'was done more often, or later, than was approved';
const noGlass = 'was done by broken glass that no record tells of';

export class ApprovalCheck {
  /** Number of the record before the export's first one; 0 if it begins with the log. */
  readonly #before: number;
  #tenant: string | undefined;
  readonly #requests = new Map<string, Request>();
  readonly #rules = new Map<string, Rule>();
  readonly #factors = new SecondFactors();
  readonly #glass = new Set<string>();
  readonly #done: ApprovedAct[] = [];
  readonly #broken: BrokenGlass[] = [];
  #acts = 0;
  #unchecked = 0;

  constructor(before: number, tenant?: string) {
    this.#before = before;
    this.#tenant = tenant;
  }

  get #isWhole(): boolean {
    return this.#before === 0;
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
    if (action === 'approval.rule') return this.#act(record) ?? this.#changeRule(record);
    const said = isJsonObject(props.approval) ? props.approval : undefined;
    if (!said) return undefined;
    if (action === 'approval.request') return this.#ask(record, said);
    if (action === 'approval.approve' || action === 'approval.deny') return this.#give(record, said);
    if (action === 'approval.withdraw' || action === 'approval.expire') return this.#end(said);
    if (action === 'approval.break-glass') return this.#breakGlass(record, said);
    return this.#act(record);
  }

  /** The problem that only the end of the export shows. */
  end(): Problem | undefined {
    // The breaking is recorded right before its act: the first record of a later part may be without.
    const isCut = (record: number): boolean => !this.#isWhole && record === this.#before + 1;
    const untold = this.#broken.find(({ record, glass }) => !this.#glass.has(glass) && !isCut(record));
    return untold && { seq: untold.record, problem: noGlass };
  }

  /** Takes what a rule is from now on. A rule that holds was changed with the words that it asks for itself. */
  #changeRule({ createdAt, props }: OwnRecord): string | undefined {
    const { object, rule } = props;
    if (!isJsonObject(object) || typeof object.id !== 'string') return undefined;
    const { id } = object;
    const before = this.#rules.get(id);
    if (before && holdsAt(before, createdAt) && !isDoneUnder(id, props.approval)) {
      return 'changes a rule without the words that it asks for';
    }
    if (!isJsonObject(rule)) {
      this.#rules.delete(id);
      return undefined;
    }
    const { count, window, expires, approvers } = rule;
    const users = isJsonObject(approvers) && Array.isArray(approvers.users) ? approvers.users : undefined;
    this.#rules.set(id, { count, window, expires, users });
    return undefined;
  }

  #ask({ keyid, props }: OwnRecord, said: JsonObject): string | undefined {
    const { id, digest } = said;
    const statement = readStatement(said);
    if (!statement || !isWord(id) || !isWord(digest) || statement.requester !== keyid || idOf(props.object) !== id) {
      return 'has a statement that does not fit its digest or its record';
    }
    this.#tenant ??= statement.tenant;
    if (statement.tenant !== this.#tenant) return 'has a statement of another tenant';
    if (this.#requests.has(id)) return 'asks for approval under an id that is taken';
    const rules = new Map<string, Rule>();
    for (const stated of statement.rules) {
      const rule = this.#ruleOf(stated);
      if (!rule) return 'asks for words by another rule than there was';
      rules.set(stated.id, rule);
    }
    this.#requests.set(id, { digest, statement, rules, words: new Map(), isOver: false, uses: 0 });
    return undefined;
  }

  /** The rule that a statement names; undefined if it was not like that. */
  #ruleOf({ id, count, window, expires }: StatedRule): Rule | undefined {
    const known = this.#rules.get(id);
    if (known) {
      const isSame = known.count === count && known.window === window && known.expires === expires;
      return isSame ? known : undefined;
    }
    if (this.#isWhole) return undefined;
    // Made before the export begins.
    const rule: Rule = { count, window, expires, users: undefined };
    this.#rules.set(id, rule);
    return rule;
  }

  /** The request with this id; a problem if it should be there; undefined if it was made before the export begins. */
  #requestOf(id: unknown): Request | 'none' | undefined {
    const request = typeof id === 'string' ? this.#requests.get(id) : undefined;
    return request ?? (this.#isWhole || typeof id !== 'string' ? 'none' : undefined);
  }

  #give({ seq, createdAt, action, keyid }: OwnRecord, said: JsonObject): string | undefined {
    const { digest, verdict } = said;
    const request = this.#requestOf(said.id);
    if (request === 'none') return 'gives a word on no request';
    if (!isWord(digest) || (request && digest !== request.digest)) {
      return 'gives a word on another digest than that of the request';
    }
    const own = action === 'approval.approve' ? 'approve' : 'deny';
    if (verdict !== own) return 'gives another word than its action says';
    const factor = this.#factors.see(keyid, said, signedChallenge(own, digest));
    if (typeof factor === 'string') return factor;
    if (!request) return undefined;
    if (keyid === request.statement.requester) return 'gives a word of who asked';
    if (isOverAt(request, createdAt)) return 'gives a word on a request that was over';
    if (request.words.has(keyid)) return 'gives a second word of one user';
    request.words.set(keyid, { record: seq, at: createdAt, approves: own === 'approve', factor });
    if (own === 'deny') request.isOver = true;
    return undefined;
  }

  #end({ id }: JsonObject): string | undefined {
    const request = this.#requestOf(id);
    if (request === 'none') return 'ends no request';
    if (request) request.isOver = true;
    return undefined;
  }

  #breakGlass({ createdAt, keyid }: OwnRecord, said: JsonObject): string | undefined {
    const { glass, id } = said;
    if (!isWord(glass) || this.#glass.has(glass)) return 'breaks the glass under an id that is taken';
    this.#glass.add(glass);
    if (id === undefined) return undefined;
    const request = this.#requestOf(id);
    if (request === 'none') return 'breaks the glass for no request';
    const challenge = request && signedChallenge('break-glass', request.digest);
    const factor = this.#factors.see(keyid, said, challenge);
    if (typeof factor === 'string') return factor;
    if (!request) return undefined;
    if (isOverAt(request, createdAt)) return 'breaks the glass for a request that was over';
    request.glass = { id: glass, at: createdAt };
    return undefined;
  }

  /** Takes the record of an act that was done with approval, or by broken glass. */
  #act(record: OwnRecord): string | undefined {
    const { seq, action, keyid, props } = record;
    const said = isJsonObject(props.approval) ? props.approval : {};
    if (said.glass !== undefined) {
      if (!isWord(said.glass)) return noGlass;
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
    const problem = this.#miscount(record, said.rules, request) ?? this.#missing(record, said.rules, request);
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
  #actOnBroken({ seq, createdAt, action, keyid }: OwnRecord, request: Request): string | undefined {
    const { glass } = request;
    if (!glass) return noGlass;
    if (request.uses++ > 0 || createdAt > glass.at + requestLasts + spare) return tooMuch;
    this.#acts--;
    this.#broken.push({ record: seq, action, by: keyid, glass: glass.id });
    return undefined;
  }

  /** Why the words for an act's rules are not enough. */
  #miscount({ createdAt }: OwnRecord, rules: unknown, request: Request): string | undefined {
    if (!Array.isArray(rules) || rules.length === 0) return 'was done by no rule';
    let grantedAt = Number.NEGATIVE_INFINITY;
    for (const rule of rules.map(Object)) {
      const problem = this.#misruled(rule) ?? miscountOf(rule, request);
      if (problem !== undefined) return problem;
      grantedAt = Math.max(grantedAt, completedAt(rule, request));
    }
    // A window is never wider than those that approvers signed.
    const windows = [...rules, ...request.statement.rules].map(({ window }) => window);
    if (windows.includes('once') && request.uses > 0) return tooMuch;
    const lasts = Math.min(...windows.map((window) => (window === 'once' ? requestLasts : window * 1000)));
    return createdAt <= grantedAt + lasts + spare ? undefined : tooMuch;
  }

  /** Compares what the act says of a rule with what the rule's own record says. */
  #misruled({ id, count, window, words }: JsonObject): string | undefined {
    const unlike = 'counts words for another rule than there was';
    if (!isWord(id) || !isWindow(window) || !isCount(count) || !Array.isArray(words)) return unlike;
    const rule = this.#rules.get(id);
    if (!rule) return this.#isWhole ? unlike : undefined;
    const areApprovers = words.every((user) => rule.users?.includes(user) ?? true);
    return rule.count === count && rule.window === window && areApprovers ? undefined : unlike;
  }

  /** Whether the act leaves a rule of the statement out that holds, and was not changed since. */
  #missing({ createdAt }: OwnRecord, rules: unknown, request: Request): string | undefined {
    for (const [id, rule] of request.rules) {
      const isOpen = this.#rules.get(id) === rule && holdsAt(rule, createdAt);
      if (isOpen && !hasRule(rules, id)) return 'counts no words for a rule of its statement';
    }
    return undefined;
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

function holdsAt({ expires }: Rule, at: number): boolean {
  return typeof expires !== 'number' || at < expires;
}

/** Whether an act says that it had the words for the rule, or that the glass was broken for it. */
function isDoneUnder(id: string, approval: unknown): boolean {
  const { glass, use, broken, rules }: JsonObject = Object(approval);
  return glass !== undefined || (use !== undefined && (broken === true || hasRule(rules, id)));
}

function hasRule(rules: unknown, id: string): boolean {
  return Array.isArray(rules) && rules.some((rule) => idOf(rule) === id);
}

function idOf(thing: unknown): unknown {
  return Object(thing).id;
}

/** A request ends when somebody ends it, and after a day without the words that it needs. */
function isOverAt({ isOver, statement }: Request, at: number): boolean {
  return isOver || at > statement.at + requestLasts + spare;
}

/** Why the act is not the one that was approved, or not in time. */
function misfitOf(
  { action, keyid, ringname, props }: OwnRecord,
  said: JsonObject,
  request: Request,
): string | undefined {
  if (said.digest !== request.digest) return 'was done over another digest than that of the request';
  const { requester, recorded, ring, object } = request.statement;
  const done: JsonObject = Object(props.object);
  const isSame = object?.type !== done.type || object?.id === done.id;
  const isAll = isSame && isSameFurther(request.statement, said.further);
  const fits = keyid === requester && action === recorded && ringname === ring && isAll;
  if (!fits) return 'is not what was approved';
  if (request.isOver) return 'was done after the request was over';
  return said.use === request.uses + 1 ? undefined : tooMuch;
}

function wordsIn(rule: JsonObject): readonly unknown[] {
  return Array.isArray(rule.words) ? rule.words : [];
}

function miscountOf(rule: JsonObject, { statement, words }: Request): string | undefined {
  const users = wordsIn(rule);
  if (users.includes(statement.requester)) return 'counts the word of who asked';
  const given = users.map((user) => (typeof user === 'string' ? words.get(user) : undefined));
  if (given.some((word) => !word?.approves)) return 'counts a word that was not given before';
  if (new Set(users).size < users.length) return 'counts one word twice';
  return users.length < Number(rule.count) ? 'was done with fewer words than it needs' : undefined;
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
    const word = words.get(by);
    if (!word) return [];
    const { record, factor } = word;
    const { publicKey } = factor.assertion ?? {};
    if (publicKey === undefined) return [{ by, record }];
    return [{ by, record, passkey: toHex(sha256(fromBase64Url(publicKey) ?? new Uint8Array())) }];
  });
}
