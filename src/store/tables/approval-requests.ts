// The tables of requests for approval and of the words about them. A request is open until it has ended; ended ones
// stay for a while.
import type { ResourceRef } from '../../model/activity-details.ts';
import type { RequestState } from '../../model/approval-rules.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Row, Sql } from '../sql.ts';
import { objectOf, toJson } from './columns.ts';

/** An act, from the moment that it is asked for. */
interface RequestDetails {
  /** Flag with the ring's name. */
  readonly action: string;
  /** All actions that the act comes to, without a ring's name. */
  readonly actions: readonly string[];
  readonly ring: string;
  readonly operation: string;
  readonly dialect?: string;
  readonly address?: string;
  readonly reason?: string;
  readonly object: ResourceRef | null;
  /** Names and ids by which rules may mean it. */
  readonly objects: readonly string[];
  /** Rules that are to be satisfied since the act changes them. */
  readonly itself: readonly string[];
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
  readonly state: RequestState;
  readonly details: RequestDetails;
  readonly createdAt: number;
  /** When it first had all words that it needed, or the glass was broken for it. */
  readonly grantedAt: number | undefined;
  readonly endedAt: number | undefined;
  readonly uses: number;
  readonly broken: boolean;
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
  id: string;
  act: string;
  requester: string;
  state: string;
  details: string;
  created_at: number;
  granted_at: number | null;
  ended_at: number | null;
  uses: number;
  broken: number;
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

export type ApprovalRequestTable = ReturnType<typeof approvalRequestTable>;

export function approvalRequestTable(sql: Sql) {
  return {
    byId(id: string): ApprovalRequest | undefined {
      const row = sql.get<RequestRow>('SELECT * FROM approval_requests WHERE id = ?', id);
      return row && fromRow(row);
    },

    /** The open request for an act. */
    openFor(act: string): ApprovalRequest | undefined {
      const text = 'SELECT * FROM approval_requests WHERE act = ? AND ended_at IS NULL';
      const row = sql.get<RequestRow>(text, act);
      return row && fromRow(row);
    },

    /** Newest first, up to and including the first for which `enough` returns true. */
    list(enough: (request: ApprovalRequest) => boolean): void {
      sql.some<RequestRow>((row) => enough(fromRow(row)), 'SELECT * FROM approval_requests ORDER BY seq DESC');
    },

    /** The open ones, oldest first. */
    open(most: number): ApprovalRequest[] {
      const text = 'SELECT * FROM approval_requests WHERE ended_at IS NULL ORDER BY seq LIMIT ?';
      return sql.all<RequestRow>(text, most).map(fromRow);
    },

    openOf(requester: string): ApprovalRequest[] {
      const text = 'SELECT * FROM approval_requests WHERE requester = ? AND ended_at IS NULL';
      return sql.all<RequestRow>(text, requester).map(fromRow);
    },

    countOpen(): number {
      const text = 'SELECT COUNT(*) AS n FROM approval_requests WHERE ended_at IS NULL';
      return sql.get<{ n: number }>(text)?.n ?? 0;
    },

    countOpenOf(requester: string): number {
      const text = 'SELECT COUNT(*) AS n FROM approval_requests WHERE requester = ? AND ended_at IS NULL';
      return sql.get<{ n: number }>(text, requester)?.n ?? 0;
    },

    insert(request: ApprovalRequest): void {
      sql.run(
        `INSERT INTO approval_requests (id, act, requester, state, details, created_at, uses, broken)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
        request.id,
        request.act,
        request.requester,
        request.state,
        toJson({ ...request.details }),
        request.createdAt,
        request.uses,
        request.broken ? 1 : 0,
      );
    },

    grant(id: string, now: number, broken: boolean): void {
      const text = `UPDATE approval_requests SET state = 'granted', granted_at = COALESCE(granted_at, ?), broken = ?
          WHERE id = ?`;
      sql.run(text, now, broken ? 1 : 0, id);
    },

    noteUse(id: string): void {
      sql.run('UPDATE approval_requests SET uses = uses + 1 WHERE id = ?', id);
    },

    end(id: string, state: RequestState, now: number): void {
      sql.run('UPDATE approval_requests SET state = ?, ended_at = ? WHERE id = ?', state, now, id);
    },

    /** Erases some that ended before a time, with their words. */
    purge(before: number, most: number): void {
      const text = 'SELECT id FROM approval_requests WHERE ended_at < ? ORDER BY ended_at LIMIT ?';
      for (const { id } of sql.all<{ id: string }>(text, before, most)) {
        sql.run('DELETE FROM approval_words WHERE request_id = ?', id);
        sql.run('DELETE FROM approval_requests WHERE id = ?', id);
      }
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
    },
  };
}

function fromRow(row: RequestRow): ApprovalRequest {
  return {
    id: row.id,
    act: row.act,
    requester: row.requester,
    // Casts: this file wrote them.
    state: row.state as RequestState,
    details: objectOf(row.details) as unknown as RequestDetails,
    createdAt: row.created_at,
    grantedAt: row.granted_at ?? undefined,
    endedAt: row.ended_at ?? undefined,
    uses: row.uses,
    broken: row.broken === 1,
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
