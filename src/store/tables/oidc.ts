// The OpenID Connect tables of a tenant's database: the settings of its identity provider, and the users' identities
// there.

import type { JsonObject } from '../../model/json.ts';
import type { Row, Sql } from '../sql.ts';
import { objectOf, textsOf, toJson } from './columns.ts';

interface StoredProvider {
  readonly settings: JsonObject;
  /** Epoch milliseconds. */
  readonly changedAt: number;
}

/** A user's identity at the provider. */
interface OidcUser {
  readonly userId: string;
  readonly issuer: string;
  readonly subject: string;
  /** Flags that the claims gave at the last login, in lower case. */
  readonly granted: readonly string[];
}

interface ProviderRow extends Row {
  settings: string;
  changed_at: number;
}

interface OidcUserRow extends Row {
  user_id: string;
  issuer: string;
  subject: string;
  granted: string;
}

const select = 'SELECT user_id, issuer, subject, granted FROM oidc_users';

export type OidcTable = ReturnType<typeof oidcTable>;

export function oidcTable(sql: Sql) {
  function unlink(userId: string): boolean {
    return sql.run('DELETE FROM oidc_users WHERE user_id = ?', userId) > 0;
  }

  return {
    /** Undefined if no provider is set. */
    provider(): StoredProvider | undefined {
      const row = sql.get<ProviderRow>('SELECT settings, changed_at FROM oidc_providers');
      return row && { settings: objectOf(row.settings), changedAt: row.changed_at };
    },

    /** Replaces the current provider; undefined removes it. */
    setProvider(provider: StoredProvider | undefined): void {
      sql.run('DELETE FROM oidc_providers');
      if (!provider) return;
      const { settings, changedAt } = provider;
      sql.run('INSERT INTO oidc_providers (settings, changed_at) VALUES (?, ?)', toJson(settings), changedAt);
    },

    bySubject(issuer: string, subject: string): OidcUser | undefined {
      const row = sql.get<OidcUserRow>(`${select} WHERE issuer = ? AND subject = ?`, issuer, subject);
      return row && fromRow(row);
    },

    byUser(userId: string): OidcUser | undefined {
      const row = sql.get<OidcUserRow>(`${select} WHERE user_id = ?`, userId);
      return row && fromRow(row);
    },

    /** Replaces any link of that user. */
    link({ userId, issuer, subject, granted }: OidcUser): void {
      unlink(userId);
      sql.run(
        'INSERT INTO oidc_users (user_id, issuer, subject, granted) VALUES (?, ?, ?, ?)',
        userId,
        issuer,
        subject,
        toJson(granted),
      );
    },

    /** Returns false if the user had no link. */
    unlink,
  };
}

function fromRow({ user_id, issuer, subject, granted }: OidcUserRow): OidcUser {
  return { userId: user_id, issuer, subject, granted: textsOf(granted) };
}
