// The table of the appliance's tenants, in its own database. A deleted tenant stays, hidden, until it is purged.

import type { CustodyPolicy } from '../../model/custody.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Row, Sql } from '../sql.ts';
import { objectOf, textsOf, toJson } from './columns.ts';

export interface TenantRecord {
  readonly seq: number;
  readonly id: string;
  readonly name: string;
  /** The random name of its directory. */
  readonly dir: string;
  /** Lower case, without ports; `*` matches any host that no other tenant lists. */
  readonly hosts: readonly string[];
  /** Maximum number of each kind of object. */
  readonly limits: JsonObject;
  /** Names of flags; users who have one of them need a second factor. */
  readonly secondFactorFor: readonly string[];
  /** The custody allowed for new rings. */
  readonly custody: CustodyPolicy;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly deletedAt: number | undefined;
}

export type NewTenant = Omit<TenantRecord, 'seq' | 'secondFactorFor' | 'custody' | 'deletedAt'>;

interface TenantRow extends Row {
  seq: number;
  id: string;
  name: string;
  dir: string;
  hosts: string;
  limits: string;
  second_factor_for: string;
  custody: CustodyPolicy;
  created_at: number;
  updated_at: number;
  deleted_at: number | null;
}

export type TenantTable = ReturnType<typeof tenantTable>;

export function tenantTable(sql: Sql) {
  return {
    insert(tenant: NewTenant): void {
      sql.run(
        'INSERT INTO tenants (id, name, dir, hosts, limits, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)',
        tenant.id,
        tenant.name,
        tenant.dir,
        toJson(tenant.hosts),
        toJson(tenant.limits),
        tenant.createdAt,
        tenant.updatedAt,
      );
    },

    /** The tenant of that name, unless deleted. */
    byName(name: string): TenantRecord | undefined {
      const row = sql.get<TenantRow>('SELECT * FROM tenants WHERE name = ? AND deleted_at IS NULL', name);
      return row && fromRow(row);
    },

    /** The tenant of that id, deleted or not. */
    byId(id: string): TenantRecord | undefined {
      const row = sql.get<TenantRow>('SELECT * FROM tenants WHERE id = ?', id);
      return row && fromRow(row);
    },

    /** All tenants, deleted ones included. */
    all(): TenantRecord[] {
      return sql.all<TenantRow>('SELECT * FROM tenants ORDER BY seq').map(fromRow);
    },

    /** Writes name, hosts, limits, `secondFactorFor`, custody, `updatedAt` and `deletedAt`. */
    update(tenant: TenantRecord): void {
      sql.run(
        `UPDATE tenants SET name = ?, hosts = ?, limits = ?, second_factor_for = ?, custody = ?, updated_at = ?,
          deleted_at = ? WHERE id = ?`,
        tenant.name,
        toJson(tenant.hosts),
        toJson(tenant.limits),
        toJson(tenant.secondFactorFor),
        tenant.custody,
        tenant.updatedAt,
        tenant.deletedAt ?? null,
        tenant.id,
      );
    },

    erase(id: string): void {
      sql.run('DELETE FROM tenants WHERE id = ?', id);
    },
  };
}

function fromRow(row: TenantRow): TenantRecord {
  return {
    seq: row.seq,
    id: row.id,
    name: row.name,
    dir: row.dir,
    hosts: textsOf(row.hosts),
    limits: objectOf(row.limits),
    secondFactorFor: textsOf(row.second_factor_for),
    custody: row.custody,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    deletedAt: row.deleted_at ?? undefined,
  };
}
