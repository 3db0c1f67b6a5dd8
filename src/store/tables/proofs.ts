// The table of proofs: ways besides its secret by which an API key is proved.
import type { JsonObject } from '../../model/json.ts';
import type { Row, Sql } from '../sql.ts';
import { objectOf, toJson } from './columns.ts';

export type ProofKind = 'aws' | 'certificate' | 'jwt';

export interface Proof {
  readonly id: string;
  readonly apikeyId: string;
  readonly kind: ProofKind;
  /** A display name; empty if none was given. */
  readonly name: string;
  readonly active: boolean;
  /**
   * An access key id, the hash of a certificate's public key, an issuer, or `san ` and a name in certificates;
   * undefined if nothing alone finds it.
   */
  readonly subject: string | undefined;
  readonly settings: JsonObject;
  readonly sealed: SealedSecret | undefined;
  readonly createdAt: number;
  readonly createdBy: string;
  /** Accurate to a minute; undefined before the first use. */
  readonly usedAt: number | undefined;
}

export interface SealedSecret {
  readonly epoch: number;
  readonly text: string;
}

/** The part of a proof that authentication needs. */
export interface KnownProof extends Omit<Proof, 'usedAt'> {
  /** Higher than those of older proofs. */
  readonly seq: number;
}

interface ProofRow extends Row {
  seq: number;
  id: string;
  apikey_id: string;
  kind: string;
  name: string;
  active: number;
  subject: string | null;
  settings: string;
  epoch: number | null;
  sealed: string | null;
  created_at: number;
  created_by: string | null;
}

type ShownRow = ProofRow & { used_at: number | null };

const columns = 'seq, id, apikey_id, kind, name, active, subject, settings, epoch, sealed, created_at, created_by';
const shown = `SELECT ${columns}, (SELECT used_at FROM api_key_proof_uses u WHERE u.proof_id = api_key_proofs.id)
  AS used_at FROM api_key_proofs`;

/** Milliseconds between two notes of a proof's use. */
const useNoted = 60_000;

export type ProofTable = ReturnType<typeof proofTable>;

export function proofTable(sql: Sql) {
  return {
    insert(proof: Omit<Proof, 'usedAt'>): void {
      sql.run(
        `INSERT INTO api_key_proofs (id, apikey_id, kind, name, active, subject, settings, epoch, sealed, created_at,
          created_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        proof.id,
        proof.apikeyId,
        proof.kind,
        proof.name,
        proof.active ? 1 : 0,
        proof.subject ?? null,
        toJson(proof.settings),
        proof.sealed?.epoch ?? null,
        proof.sealed?.text ?? null,
        proof.createdAt,
        proof.createdBy,
      );
    },

    byId: (id: string): KnownProof | undefined =>
      sql.remember('api_key_proofs', id, () => {
        const row = sql.get<ProofRow>(`SELECT ${columns} FROM api_key_proofs WHERE id = ?`, id);
        return row && fromRow(row);
      }),

    /** The proof of a kind of which each subject has one. */
    bySubject: (kind: 'aws' | 'certificate', subject: string): KnownProof | undefined =>
      sql.remember('api_key_proofs', `${kind} ${subject}`, () => {
        const row = sql.get<ProofRow>(
          `SELECT ${columns} FROM api_key_proofs WHERE kind = ? AND subject = ?`,
          kind,
          subject,
        );
        return row && fromRow(row);
      }),

    /** Proofs by certificates that have this name, oldest first, at most `most`. `subject` begins with `san `. */
    byCertificateName: (subject: string, most: number): readonly KnownProof[] =>
      sql.remember('api_key_proofs', `names ${subject}`, () => {
        const rows = sql.all<ProofRow>(
          `SELECT ${columns} FROM api_key_proofs WHERE kind = 'certificate' AND subject = ? ORDER BY seq LIMIT ?`,
          subject,
          most,
        );
        return rows.length > 0 ? rows.map(fromRow) : undefined;
      }) ?? [],

    /** Whether any proof is by a name in certificates: if none is, no name needs to be looked up. */
    hasCertificateNames: (): boolean =>
      sql.remember('api_key_proofs', 'any name', () => ({
        is:
          sql.get(
            `SELECT 1 AS one FROM api_key_proofs WHERE kind = 'certificate' AND subject >= 'san ' AND subject < 'san!'
              LIMIT 1`,
          ) !== undefined,
      }))?.is ?? false,

    /** Active proofs of a kind and subject, oldest first, at most `most`. */
    activeBySubject: (kind: ProofKind, subject: string, most: number): KnownProof[] =>
      sql
        .all<ProofRow>(
          `SELECT ${columns} FROM api_key_proofs WHERE kind = ? AND subject = ? AND active = 1 ORDER BY seq LIMIT ?`,
          kind,
          subject,
          most,
        )
        .map(fromRow),

    /** Active proofs by certificates that end in this time, the first to end first, at most `most`. */
    endingCertificates: ({ from, to }: { readonly from: number; readonly to: number }, most: number): KnownProof[] =>
      sql
        .all<ProofRow>(
          `SELECT ${columns} FROM api_key_proofs WHERE kind = 'certificate' AND active = 1
            AND json_extract(settings, '$.notAfter') BETWEEN ? AND ?
            ORDER BY json_extract(settings, '$.notAfter'), seq LIMIT ?`,
          from,
          to,
          most,
        )
        .map(fromRow),

    /** Oldest first. */
    ofKey: (apikeyId: string): (Proof & KnownProof)[] =>
      sql.all<ShownRow>(`${shown} WHERE apikey_id = ? ORDER BY seq`, apikeyId).map((row) => ({
        ...fromRow(row),
        usedAt: row.used_at ?? undefined,
      })),

    /** PEM of the authorities that active proofs trust, at most `most`. */
    authorities: (most: number): readonly string[] =>
      sql.remember('api_key_proofs', `authorities ${most}`, () =>
        sql
          .all<{ ca: string }>(
            `SELECT DISTINCT json_extract(settings, '$.ca') AS ca FROM api_key_proofs
              WHERE kind = 'certificate' AND active = 1 AND ca IS NOT NULL LIMIT ?`,
            most,
          )
          .map(({ ca }) => ca),
      ) ?? [],

    /** Whether there is any active proof of that kind. */
    hasKind: (kind: ProofKind): boolean =>
      sql.remember('api_key_proofs', `any ${kind}`, () => ({
        is: sql.get('SELECT 1 AS one FROM api_key_proofs WHERE kind = ? AND active = 1 LIMIT 1', kind) !== undefined,
      }))?.is ?? false,

    /** Notes a use, once a minute. */
    noteUse(id: string, now: number): void {
      const noted = sql.remember('api_key_proof_uses', id, () =>
        sql.get<{ used_at: number }>('SELECT used_at FROM api_key_proof_uses WHERE proof_id = ?', id),
      );
      // A clock that was set back counts too.
      if (noted && Math.abs(now - noted.used_at) < useNoted) return;
      sql.run(
        `INSERT INTO api_key_proof_uses (proof_id, used_at) VALUES (?, ?)
          ON CONFLICT (proof_id) DO UPDATE SET used_at = excluded.used_at`,
        id,
        now,
      );
    },

    setActive(id: string, active: boolean): void {
      sql.run('UPDATE api_key_proofs SET active = ? WHERE id = ?', active ? 1 : 0, id);
    },

    setSettings(id: string, settings: JsonObject): void {
      sql.run('UPDATE api_key_proofs SET settings = ? WHERE id = ?', toJson(settings), id);
    },

    erase(id: string): void {
      sql.run('DELETE FROM api_key_proof_uses WHERE proof_id = ?', id);
      sql.run('DELETE FROM api_key_proofs WHERE id = ?', id);
    },

    /** Proofs with a secret sealed under an older key than that of `epoch`, at most `most`. */
    sealedBefore: (epoch: number, most: number): KnownProof[] =>
      sql
        .all<ProofRow>(`SELECT ${columns} FROM api_key_proofs WHERE epoch < ? ORDER BY seq LIMIT ?`, epoch, most)
        .map(fromRow),

    reseal(id: string, { epoch, text }: SealedSecret): void {
      sql.run('UPDATE api_key_proofs SET epoch = ?, sealed = ? WHERE id = ?', epoch, text, id);
    },
  };
}

function fromRow(row: ProofRow): KnownProof {
  return {
    seq: row.seq,
    id: row.id,
    apikeyId: row.apikey_id,
    // Cast: only `insert` writes the column.
    kind: row.kind as ProofKind,
    name: row.name,
    active: row.active === 1,
    subject: row.subject ?? undefined,
    settings: objectOf(row.settings),
    sealed: row.epoch === null || row.sealed === null ? undefined : { epoch: row.epoch, text: row.sealed },
    createdAt: row.created_at,
    createdBy: row.created_by ?? '',
  };
}
