// All tables of the appliance's own database, over whatever driver.
import type { Sql } from '../sql.ts';
import { type TenantTable, tenantTable } from './tenants.ts';

export interface SystemTables {
  readonly tenants: TenantTable;
}

export function systemTables(sql: Sql): SystemTables {
  return { tenants: tenantTable(sql) };
}
