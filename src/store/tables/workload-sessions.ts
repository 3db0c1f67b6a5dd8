// The table of workload sessions, which proofs of API keys open, each found by the hash of its token; and the tokens
// from outside that may be used once. Ended and expired rows stay until they are purged.
import type { JsonObject } from '../../model/json.ts';
import type { Row, Sql } from '../sql.ts';
import { objectOf, toJson } from './columns.ts';

export interface WorkloadSession {
  readonly tokenHash: string;
  readonly id: string;
  readonly apikeyId: string;
  readonly proofId: string;
  /** The program, in the words of its proof: the subject of a token or of a certificate. */
  readonly subject: string;
  /** Hash of the public key of the client certificate that every request must come with; undefined = none. */
  readonly boundTo: string | undefined;
  /** Further facts about the login, for clients. */
  readonly details: JsonObject;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** No renewal extends beyond it. */
  readonly lastExpiry: number;
  readonly endedAt: number | undefined;
}

interface SessionRow extends Row {
  token_hash: string;
  id: string;
  apikey_id: string;
  proof_id: string;
  subject: string;
  bound_to: string | null;
  details: string;
  created_at: number;
  expires_at: number;
  last_expiry: number;
  ended_at: number | null;
}

export type WorkloadSessionTable = ReturnType<typeof workloadSessionTable>;

export function workloadSessionTable(sql: Sql) {
  return {
    insert(session: Omit<WorkloadSession, 'endedAt'>): void {
      sql.run(
        `INSERT INTO workload_sessions (token_hash, id, apikey_id, proof_id, subject, bound_to, details, created_at,
          expires_at, last_expiry) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        session.tokenHash,
        session.id,
        session.apikeyId,
        session.proofId,
        session.subject,
        session.boundTo ?? null,
        toJson(session.details),
        session.createdAt,
        session.expiresAt,
        session.lastExpiry,
      );
    },

    byTokenHash(tokenHash: string): WorkloadSession | undefined {
      const row = sql.get<SessionRow>('SELECT * FROM workload_sessions WHERE token_hash = ?', tokenHash);
      return row && fromRow(row);
    },

    extend(tokenHash: string, expiresAt: number): void {
      sql.run('UPDATE workload_sessions SET expires_at = ? WHERE token_hash = ?', expiresAt, tokenHash);
    },

    setDetails(tokenHash: string, details: JsonObject): void {
      sql.run('UPDATE workload_sessions SET details = ? WHERE token_hash = ?', toJson(details), tokenHash);
    },

    end(tokenHash: string, now: number): void {
      sql.run('UPDATE workload_sessions SET ended_at = ? WHERE token_hash = ?', now, tokenHash);
    },

    /** Erases all but the newest `most` open sessions of the key, and all but as many that have ended. */
    keepNewest(apikeyId: string, most: number, now: number): void {
      const isOpen = 'ended_at IS NULL AND expires_at > ?';
      for (const which of [isOpen, `NOT (${isOpen})`]) {
        const beyond = sql.all<{ seq: number }>(
          `SELECT seq FROM workload_sessions WHERE apikey_id = ? AND ${which} ORDER BY seq DESC LIMIT 20 OFFSET ?`,
          apikeyId,
          now,
          most,
        );
        for (const { seq } of beyond) sql.run('DELETE FROM workload_sessions WHERE seq = ?', seq);
      }
    },

    eraseOfProof(proofId: string): void {
      sql.run('DELETE FROM workload_sessions WHERE proof_id = ?', proofId);
    },

    /** Erases up to `most` sessions, and as many used tokens, that expired before `time`. */
    purge(time: number, most: number): void {
      const due = (table: string): { seq: number }[] =>
        sql.all(`SELECT seq FROM ${table} WHERE expires_at < ? ORDER BY expires_at, seq LIMIT ?`, time, most);
      for (const { seq } of due('workload_sessions')) sql.run('DELETE FROM workload_sessions WHERE seq = ?', seq);
      for (const { seq } of due('used_tokens')) sql.run('DELETE FROM used_tokens WHERE seq = ?', seq);
    },

    /** Notes the use of a token that may be used once. `token` is a hash of its id. */
    useOnce(issuer: string, token: string, expiresAt: number): void {
      sql.run('INSERT INTO used_tokens (issuer, token, expires_at) VALUES (?, ?, ?)', issuer, token, expiresAt);
    },

    isUsed: (issuer: string, token: string): boolean =>
      sql.get('SELECT 1 AS used FROM used_tokens WHERE issuer = ? AND token = ?', issuer, token) !== undefined,
  };
}

function fromRow(row: SessionRow): WorkloadSession {
  return {
    tokenHash: row.token_hash,
    id: row.id,
    apikeyId: row.apikey_id,
    proofId: row.proof_id,
    subject: row.subject,
    boundTo: row.bound_to ?? undefined,
    details: objectOf(row.details),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    lastExpiry: row.last_expiry,
    endedAt: row.ended_at ?? undefined,
  };
}
