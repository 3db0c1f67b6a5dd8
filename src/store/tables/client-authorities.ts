// The table of certificates of the authority that issues client certificates: for each version of its managed key the
// newest one. The key of the newest row is the authority's.
import type { Row, Sql } from '../sql.ts';

interface ClientAuthority {
  readonly keyId: string;
  readonly version: number;
  /** DER in base64. */
  readonly certificate: string;
}

interface AuthorityRow extends Row {
  key_id: string;
  version: number;
  certificate: string;
}

export type ClientAuthorityTable = ReturnType<typeof clientAuthorityTable>;

export function clientAuthorityTable(sql: Sql) {
  return {
    newest(): ClientAuthority | undefined {
      const row = sql.get<AuthorityRow>('SELECT * FROM client_authorities ORDER BY seq DESC LIMIT 1');
      return row && fromRow(row);
    },

    ofVersion(keyId: string, version: number): ClientAuthority | undefined {
      const row = sql.get<AuthorityRow>(
        'SELECT * FROM client_authorities WHERE key_id = ? AND version = ?',
        keyId,
        version,
      );
      return row && fromRow(row);
    },

    /** Whether the managed key is or was an authority's. */
    hasKey: (keyId: string): boolean =>
      sql.remember('client_authorities', keyId, () => ({
        is: sql.get('SELECT 1 AS one FROM client_authorities WHERE key_id = ? LIMIT 1', keyId) !== undefined,
      }))?.is ?? false,

    /** Replaces the one of that version. */
    put({ keyId, version, certificate }: ClientAuthority): void {
      sql.run(
        `INSERT INTO client_authorities (key_id, version, certificate) VALUES (?, ?, ?)
          ON CONFLICT (key_id, version) DO UPDATE SET certificate = excluded.certificate`,
        keyId,
        version,
        certificate,
      );
    },
  };
}

function fromRow(row: AuthorityRow): ClientAuthority {
  return { keyId: row.key_id, version: row.version, certificate: row.certificate };
}
