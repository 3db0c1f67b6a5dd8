// The tables of users' second factors: secrets of authenticator apps, passkeys, hashes of recovery codes, and used
// passkey challenges. A factor is pending, and counts for nothing, until it is confirmed.

import type { JsonObject } from '../../model/json.ts';
import type { Row, Sql } from '../sql.ts';
import { objectOf, toJson } from './columns.ts';

export interface TotpData {
  readonly kind: 'totp';
  /** Base64url. */
  readonly secret: string;
  /** Time step of the last code used; -1 before the first. */
  readonly lastStep: number;
}

export interface PasskeyData {
  readonly kind: 'passkey';
  /** Base64url of the COSE key. */
  readonly publicKey: string;
  readonly counter: number;
  readonly transports: readonly string[];
  /** The host for which it was made. */
  readonly rpId: string;
}

export interface SecondFactor {
  readonly id: string;
  readonly userId: string;
  /** A display name; empty if none was given. */
  readonly name: string;
  readonly data: TotpData | PasskeyData;
  /** A passkey's id, given by the authenticator. */
  readonly credentialId: string | undefined;
  readonly isPending: boolean;
  readonly createdAt: number;
  readonly usedAt: number | undefined;
}

type NewSecondFactor = Omit<SecondFactor, 'usedAt'>;

interface SecondFactorRow extends Row {
  id: string;
  user_id: string;
  name: string;
  kind: string;
  data: string;
  credential_id: string | null;
  pending: number;
  created_at: number;
  used_at: number | null;
}

const select = 'SELECT id, user_id, name, kind, data, credential_id, pending, created_at, used_at FROM second_factors';

export type SecondFactorTable = ReturnType<typeof secondFactorTable>;

export function secondFactorTable(sql: Sql) {
  function eraseAllOf(userId: string): number {
    sql.run('DELETE FROM recovery_codes WHERE user_id = ?', userId);
    return sql.run('DELETE FROM second_factors WHERE user_id = ?', userId);
  }

  return {
    insert(factor: NewSecondFactor): void {
      const { kind, ...data } = factor.data;
      sql.run(
        `INSERT INTO second_factors (id, user_id, name, kind, data, credential_id, pending, created_at)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
        factor.id,
        factor.userId,
        factor.name,
        kind,
        toJson(data),
        factor.credentialId ?? null,
        factor.isPending ? 1 : 0,
        factor.createdAt,
      );
    },

    /** The user's factors, oldest first, without pending ones. */
    of(userId: string): SecondFactor[] {
      const rows = sql.all<SecondFactorRow>(`${select} WHERE user_id = ? AND pending = 0 ORDER BY seq`, userId);
      return rows.map(fromRow);
    },

    /** Whether the user has a factor that is not pending. */
    has(userId: string): boolean {
      const text = 'SELECT 1 AS has FROM second_factors WHERE user_id = ? AND pending = 0 LIMIT 1';
      return sql.get(text, userId) !== undefined;
    },

    /** Finds pending factors too. */
    byId(userId: string, id: string): SecondFactor | undefined {
      const row = sql.get<SecondFactorRow>(`${select} WHERE id = ? AND user_id = ?`, id, userId);
      return row && fromRow(row);
    },

    byCredentialId(credentialId: string): SecondFactor | undefined {
      const row = sql.get<SecondFactorRow>(`${select} WHERE credential_id = ?`, credentialId);
      return row && fromRow(row);
    },

    /** Records a use, which confirms a pending factor. */
    noteUse(id: string, { kind: _, ...data }: TotpData | PasskeyData, now: number): void {
      sql.run('UPDATE second_factors SET data = ?, used_at = ?, pending = 0 WHERE id = ?', toJson(data), now, id);
    },

    erase(id: string): void {
      sql.run('DELETE FROM second_factors WHERE id = ?', id);
    },

    erasePendingOf(userId: string): void {
      sql.run('DELETE FROM second_factors WHERE user_id = ? AND pending = 1', userId);
    },

    /** Erases all of the user's factors and recovery codes. Returns the number of factors. */
    eraseAllOf,

    /** Replaces all recovery codes; an empty list only removes them. */
    replaceRecoveryCodes(userId: string, hashes: readonly string[]): void {
      sql.run('DELETE FROM recovery_codes WHERE user_id = ?', userId);
      for (const hash of hashes) {
        sql.run('INSERT INTO recovery_codes (user_id, code_hash) VALUES (?, ?)', userId, hash);
      }
    },

    countRecoveryCodes(userId: string): number {
      const row = sql.get<{ n: number }>('SELECT COUNT(*) AS n FROM recovery_codes WHERE user_id = ?', userId);
      return row?.n ?? 0;
    },

    hasRecoveryCode(userId: string, hash: string): boolean {
      const text = 'SELECT 1 AS has FROM recovery_codes WHERE user_id = ? AND code_hash = ?';
      return sql.get(text, userId, hash) !== undefined;
    },

    /** Removes the code; returns false if the user has no such code. */
    useRecoveryCode(userId: string, hash: string): boolean {
      return sql.run('DELETE FROM recovery_codes WHERE user_id = ? AND code_hash = ?', userId, hash) === 1;
    },

    /** Marks the challenge used until it expires. Returns false if it already was. */
    useChallenge(challenge: string, expiresAt: number, now: number): boolean {
      sql.run('DELETE FROM passkey_challenges WHERE expires_at <= ?', now);
      const known = sql.get('SELECT 1 AS used FROM passkey_challenges WHERE challenge = ?', challenge);
      if (known) return false;
      sql.run('INSERT INTO passkey_challenges (challenge, expires_at) VALUES (?, ?)', challenge, expiresAt);
      return true;
    },
  };
}

function fromRow(row: SecondFactorRow): SecondFactor {
  return {
    id: row.id,
    userId: row.user_id,
    name: row.name,
    data: dataOf(row.kind, objectOf(row.data)),
    credentialId: row.credential_id ?? undefined,
    isPending: row.pending === 1,
    createdAt: row.created_at,
    usedAt: row.used_at ?? undefined,
  };
}

/** Cast: the columns hold what `insert` wrote into them. */
function dataOf(kind: string, data: JsonObject): SecondFactor['data'] {
  return { ...data, kind } as SecondFactor['data'];
}
