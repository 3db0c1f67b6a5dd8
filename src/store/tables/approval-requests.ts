// The tables of requests for approval and of the words (approvals and denials) on them. A request is open until it has
// ended; ended ones stay for a while. What people are shown of a request is long, and read separately.
import type { ResourceRef } from '../../model/activity-details.ts';
import type { Act, RequestState } from '../../model/approval-rules.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Row, Sql } from '../sql.ts';
import { objectOf, toJson } from './columns.ts';

/** An act as rules look at it, from the moment that it is asked for. */
interface RequestTerms extends Act {
  /** Rules that are to be satisfied since the act changes them. */
  readonly itself: readonly string[];
  /** Whether the rules of that moment let it be done one time only. */
  readonly isOnce: boolean;
  /** Milliseconds for which it may be done, by the rules of that moment. */
  readonly lasts: number;
}

/** A request as people are shown it. */
interface RequestDetails {
  /** Flag with the ring's name. */
  readonly action: string;
  readonly operation: string;
  readonly dialect?: string;
  readonly address?: string;
  readonly reason?: string;
  readonly object: ResourceRef | null;
  readonly parameters: JsonObject;
  readonly body: JsonObject | null;
  readonly effects: JsonObject;
  readonly statement: string;
  readonly digest: string;
}

export interface ApprovalRequest {
  readonly id: string;
  /** Hash of who does what to what. */
  readonly act: string;
  readonly requester: string;
  /** The User or API key whose requests are counted together: who made the requester, its owner, or else itself. */
  readonly holder: string;
  readonly state: RequestState;
  readonly terms: RequestTerms;
  readonly createdAt: number;
  /** When it first had all words that it needed, or the glass was broken for it. */
  readonly grantedAt: number | undefined;
  /** When it is over at the latest. */
  readonly endsAt: number;
  readonly endedAt: number | undefined;
  readonly uses: number;
  /** The User who broke the glass for it. */
  readonly brokenBy: string | undefined;
}

interface NewRequest extends ApprovalRequest {
  readonly details: RequestDetails;
}

export interface ApprovalWord {
  readonly requestId: string;
  readonly userId: string;
  readonly verdict: 'approve' | 'deny';
  readonly at: number;
  readonly factorId: string;
  readonly factorKind: 'totp' | 'passkey';
  /** A passkey signed the digest. */
  readonly signed: boolean;
  readonly reason: string | undefined;
}

interface RequestRow extends Row {
  seq: number;
  id: string;
  act: string;
  requester: string;
  holder: string;
  state: string;
  terms: string;
  created_at: number;
  granted_at: number | null;
  ends_at: number;
  ended_at: number | null;
  uses: number;
  broken_by: string | null;
}

interface WordRow extends Row {
  request_id: string;
  user_id: string;
  verdict: string;
  at: number;
  factor_id: string;
  factor_kind: string;
  signed: number;
  reason: string | null;
}

const columns = `seq, id, act, requester, holder, state, terms, created_at, granted_at, ends_at, ended_at, uses,
  broken_by`;

/** Requests by a caller, by API keys of theirs, and those about which they said a word. */
const own = `seq IN (
  SELECT seq FROM approval_requests WHERE requester = ?
  UNION SELECT seq FROM approval_requests WHERE requester IN (SELECT id FROM api_keys WHERE user_id = ?)
  UNION SELECT r.seq FROM approval_words w JOIN approval_requests r ON r.id = w.request_id WHERE w.user_id = ?)`;

/** Which requests a list wants. */
interface RequestFilter {
  /** A caller whose own they are to be; absent for all. */
  readonly of?: string | undefined;
  /** Id of the caller who made them; absent for any. */
  readonly requester?: string | undefined;
  readonly isOpen: boolean;
  readonly oldestFirst?: boolean;
}

export type ApprovalRequestTable = ReturnType<typeof approvalRequestTable>;

export function approvalRequestTable(sql: Sql) {
  return {
    byId(id: string): ApprovalRequest | undefined {
      const row = sql.get<RequestRow>(`SELECT ${columns} FROM approval_requests WHERE id = ?`, id);
      return row && fromRow(row);
    },

    /** Undefined for an unknown request. */
    detailsOf(id: string): RequestDetails | undefined {
      const row = sql.get<{ details: string }>('SELECT details FROM approval_requests WHERE id = ?', id);
      // Cast: this file wrote it.
      return row && (objectOf(row.details) as unknown as RequestDetails);
    },

    /** Characters of what `detailsOf` reads. */
    lengthOf(id: string): number {
      const text = 'SELECT LENGTH(details) AS n FROM approval_requests WHERE id = ?';
      return sql.get<{ n: number }>(text, id)?.n ?? 0;
    },

    /** A text that is another one after each word, and after the end. */
    marksOf(id: string): string {
      const text = 'SELECT words, granted_at, ended_at FROM approval_requests WHERE id = ?';
      return JSON.stringify(sql.get<Row>(text, id) ?? null);
    },

    /** The open request for an act. */
    openFor(act: string): ApprovalRequest | undefined {
      const text = `SELECT ${columns} FROM approval_requests WHERE act = ? AND ended_at IS NULL`;
      const row = sql.get<RequestRow>(text, act);
      return row && fromRow(row);
    },

    /** Those beyond a place, newest first unless the filter says otherwise; `next` is the place of the last. */
    page({ of, requester, isOpen, oldestFirst = false }: RequestFilter, after: number | undefined, most: number) {
      const from = after ?? (oldestFirst ? 0 : Number.MAX_SAFE_INTEGER);
      const text = [
        ...(of === undefined ? [] : [own]),
        ...(requester === undefined ? [] : ['requester = ?']),
        ...(isOpen ? ['ended_at IS NULL'] : []),
        oldestFirst ? 'seq > ?' : 'seq < ?',
      ].join(' AND ');
      const rows = sql.all<RequestRow>(
        `SELECT ${columns} FROM approval_requests WHERE ${text} ORDER BY seq ${oldestFirst ? 'ASC' : 'DESC'} LIMIT ?`,
        ...(of === undefined ? [] : [of, of, of]),
        ...(requester === undefined ? [] : [requester]),
        from,
        most,
      );
      const requests = rows.map((row) => ({ ...fromRow(row), seq: row.seq }));
      return { requests, next: rows.length < most ? undefined : rows.at(-1)?.seq };
    },

    /** Open ones of a caller that could be done: words were said about them, or the glass was broken. */
    answeredOf(requester: string, operation: string): ApprovalRequest[] {
      const text = `SELECT ${columns} FROM approval_requests
          WHERE requester = ? AND operation = ? AND ended_at IS NULL AND (words > 0 OR broken_by IS NOT NULL)`;
      return sql.all<RequestRow>(text, requester, operation).map(fromRow);
    },

    /** Open ones of all callers that words were said about, or for which the glass was broken. */
    answered(): ApprovalRequest[] {
      const text = `SELECT ${columns} FROM approval_requests
          WHERE ended_at IS NULL AND (words > 0 OR broken_by IS NOT NULL) ORDER BY seq`;
      return sql.all<RequestRow>(text).map(fromRow);
    },

    /** Open ones of all callers that have a code instead of something hidden. */
    coded(): ApprovalRequest[] {
      const text = `SELECT ${columns} FROM approval_requests
          WHERE ended_at IS NULL AND details LIKE '%"hidden":"%' ORDER BY seq`;
      return sql.all<RequestRow>(text).map(fromRow);
    },

    /** Open ones whose time is over for certain. */
    overdue(now: number, most: number): ApprovalRequest[] {
      const text = `SELECT ${columns} FROM approval_requests WHERE ended_at IS NULL AND ends_at <= ?
          ORDER BY ends_at LIMIT ?`;
      return sql.all<RequestRow>(text, now, most).map(fromRow);
    },

    countOpen(now: number): number {
      const text = 'SELECT COUNT(*) AS n FROM approval_requests WHERE ended_at IS NULL AND ends_at > ?';
      return sql.get<{ n: number }>(text, now)?.n ?? 0;
    },

    countOpenOf(holder: string, now: number): number {
      const text = `SELECT COUNT(*) AS n FROM approval_requests
          WHERE holder = ? AND ended_at IS NULL AND ends_at > ?`;
      return sql.get<{ n: number }>(text, holder, now)?.n ?? 0;
    },

    /** The identity that an identity's requests are noted to be counted with. */
    holderOf: (id: string): string | undefined =>
      sql.get<{ holder: string }>('SELECT holder FROM approval_holders WHERE id = ?', id)?.holder,

    noteHolder(id: string, holder: string): void {
      sql.run('INSERT INTO approval_holders (id, holder) VALUES (?, ?)', id, holder);
    },

    /** Those made after a time, and up to another. */
    countMadeBy(holder: string, after: number, until: number): number {
      const text =
        'SELECT COUNT(*) AS n FROM approval_requests WHERE holder = ? AND created_at > ? AND created_at <= ?';
      return sql.get<{ n: number }>(text, holder, after, until)?.n ?? 0;
    },

    insert(request: NewRequest): void {
      sql.run(
        `INSERT INTO approval_requests (id, act, requester, operation, holder, state, terms, details, created_at,
            ends_at, uses, words) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`,
        request.id,
        request.act,
        request.requester,
        request.details.operation,
        request.holder,
        request.state,
        toJson({ ...request.terms }),
        toJson({ ...request.details }),
        request.createdAt,
        request.endsAt,
        request.uses,
      );
    },

    /** @param brokenBy who broke the glass; undefined if it has all words. */
    grant(id: string, { now, endsAt, brokenBy }: { now: number; endsAt: number; brokenBy?: string | undefined }): void {
      const text = `UPDATE approval_requests SET state = 'granted', granted_at = COALESCE(granted_at, ?), ends_at = ?,
          broken_by = ? WHERE id = ?`;
      sql.run(text, now, endsAt, brokenBy ?? null, id);
    },

    noteUse(id: string): void {
      sql.run('UPDATE approval_requests SET uses = uses + 1 WHERE id = ?', id);
    },

    end(id: string, state: RequestState, now: number): void {
      sql.run('UPDATE approval_requests SET state = ?, ended_at = ? WHERE id = ?', state, now, id);
    },

    /** Takes back the last use of a request, and its end; not if the act was asked for once more meanwhile. */
    giveBack(id: string): void {
      const request = this.byId(id);
      const open = request && this.openFor(request.act);
      if (!request || (open && open.id !== id)) return;
      sql.run("UPDATE approval_requests SET state = 'granted', ended_at = NULL, uses = uses - 1 WHERE id = ?", id);
    },

    /** Erases some that ended before a time, with their words. */
    purge(before: number, most: number): void {
      const text = 'SELECT id FROM approval_requests WHERE ended_at < ? ORDER BY ended_at LIMIT ?';
      for (const { id } of sql.all<{ id: string }>(text, before, most)) erase(sql, id);
    },

    /** Erases some of a holder's that ended first, beyond so many. */
    purgeOf(holder: string, kept: number, most: number): void {
      const text = `SELECT id FROM approval_requests WHERE holder = ? AND ended_at IS NOT NULL
          ORDER BY ended_at DESC LIMIT ? OFFSET ?`;
      for (const { id } of sql.all<{ id: string }>(text, holder, most, kept)) erase(sql, id);
    },

    /** The User for whom the passkey with this mark signed. */
    signerOf(mark: string): string | undefined {
      return sql.get<{ user_id: string }>('SELECT user_id FROM approval_signers WHERE mark = ?', mark)?.user_id;
    },

    noteSigner(mark: string, userId: string): void {
      sql.run('INSERT INTO approval_signers (mark, user_id) VALUES (?, ?)', mark, userId);
    },

    /** Oldest first. */
    wordsOf(requestId: string): ApprovalWord[] {
      const text = 'SELECT * FROM approval_words WHERE request_id = ? ORDER BY seq';
      return sql.all<WordRow>(text, requestId).map(wordFromRow);
    },

    addWord(word: ApprovalWord): void {
      sql.run(
        `INSERT INTO approval_words (request_id, user_id, verdict, at, factor_id, factor_kind, signed, reason)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
        word.requestId,
        word.userId,
        word.verdict,
        word.at,
        word.factorId,
        word.factorKind,
        word.signed ? 1 : 0,
        word.reason ?? null,
      );
      sql.run('UPDATE approval_requests SET words = words + 1 WHERE id = ?', word.requestId);
    },
  };
}

function erase(sql: Sql, id: string): void {
  sql.run('DELETE FROM approval_words WHERE request_id = ?', id);
  sql.run('DELETE FROM approval_requests WHERE id = ?', id);
}

function fromRow(row: RequestRow): ApprovalRequest {
  return {
    id: row.id,
    act: row.act,
    requester: row.requester,
    holder: row.holder,
    // Casts: this file wrote them.
    state: row.state as RequestState,
    terms: objectOf(row.terms) as unknown as RequestTerms,
    createdAt: row.created_at,
    grantedAt: row.granted_at ?? undefined,
    endsAt: row.ends_at,
    endedAt: row.ended_at ?? undefined,
    uses: row.uses,
    brokenBy: row.broken_by ?? undefined,
  };
}

function wordFromRow(row: WordRow): ApprovalWord {
  return {
    requestId: row.request_id,
    userId: row.user_id,
    verdict: row.verdict === 'deny' ? 'deny' : 'approve',
    at: row.at,
    factorId: row.factor_id,
    factorKind: row.factor_kind === 'passkey' ? 'passkey' : 'totp',
    signed: row.signed === 1,
    reason: row.reason ?? undefined,
  };
}
