// All tables of the appliance's own database, over whatever driver.
import type { Sql } from '../sql.ts';
import { type SettingTable, settingTable } from './settings.ts';
import { type TenantTable, tenantTable } from './tenants.ts';

export interface SystemTables {
  readonly settings: SettingTable;
  readonly tenants: TenantTable;
}

export function systemTables(sql: Sql): SystemTables {
  return { settings: settingTable(sql), tenants: tenantTable(sql) };
}
