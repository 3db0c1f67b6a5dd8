// The tables of the two kinds of database, over any driver: a tenant's, and the appliance's own. Also the smallest
// table of the latter, settings by name. The schemas are in migrations.ts.
import type { Tables } from '../port.ts';
import type { Row, Sql } from '../sql.ts';
import { accountTable } from './accounts.ts';
import { apiKeyTable } from './api-keys.ts';
import { approvalRequestTable } from './approval-requests.ts';
import { approvalRuleTable } from './approval-rules.ts';
import { assetTable } from './assets.ts';
import { brokenGlassTable } from './broken-glass.ts';
import { clientAuthorityTable } from './client-authorities.ts';
import { keyUseTable } from './key-uses.ts';
import { kmipObjectTable } from './kmip-objects.ts';
import { managedKeyUseTable } from './managed-key-uses.ts';
import { keyVersionTable } from './managed-key-versions.ts';
import { managedKeyTable } from './managed-keys.ts';
import { type MarkTable, markTable } from './marks.ts';
import { oidcTable } from './oidc.ts';
import { proofTable } from './proofs.ts';
import { ringKeyTable } from './ring-keys.ts';
import { ringTable } from './rings.ts';
import { secondFactorTable } from './second-factors.ts';
import { sessionTable } from './sessions.ts';
import { tangTable } from './tang.ts';
import { type TenantTable, tenantTable } from './tenants.ts';
import { userTokenTable } from './user-tokens.ts';
import { userTable } from './users.ts';
import { wayInTable } from './ways-in.ts';
import { workloadSessionTable } from './workload-sessions.ts';
import { wrappingKeyTable } from './wrapping-keys.ts';

export function tenantTables(sql: Sql): Tables {
  return {
    rings: ringTable(sql),
    ringKeys: ringKeyTable(sql),
    keyUses: keyUseTable(sql),
    assets: assetTable(sql),
    accounts: accountTable(sql),
    apiKeys: apiKeyTable(sql),
    proofs: proofTable(sql),
    workloadSessions: workloadSessionTable(sql),
    clientAuthorities: clientAuthorityTable(sql),
    users: userTable(sql),
    sessions: sessionTable(sql),
    userTokens: userTokenTable(sql),
    secondFactors: secondFactorTable(sql),
    oidc: oidcTable(sql),
    managedKeys: managedKeyTable(sql),
    keyVersions: keyVersionTable(sql),
    managedKeyUses: managedKeyUseTable(sql),
    kmipObjects: kmipObjectTable(sql),
    wrappingKeys: wrappingKeyTable(sql),
    tang: tangTable(sql),
    approvalRules: approvalRuleTable(sql),
    approvalRequests: approvalRequestTable(sql),
    brokenGlass: brokenGlassTable(sql),
    waysIn: wayInTable(sql),
  };
}

export interface SystemTables {
  readonly marks: MarkTable;
  readonly settings: SettingTable;
  readonly tenants: TenantTable;
}

export function systemTables(sql: Sql): SystemTables {
  return { marks: markTable(sql), settings: settingTable(sql), tenants: tenantTable(sql) };
}

/** Name of the setting that says how far activity was streamed to a target. */
export type TargetPlacesName = `activity-to ${string}`;

/**
 * `url`: where clients reached the appliance when it was last served. `epoch`: the current life of the appliance.
 * `backup`: the last backup restored on trial. `age`: the clock by which data expires. `ship-to`: the directory that it
 * shipped to when it was last served, empty if none.
 */
type SettingName = 'url' | 'epoch' | 'backup' | 'age' | 'ship-to' | TargetPlacesName;

interface SettingRow extends Row {
  value: string;
}

interface TargetRow extends SettingRow {
  name: TargetPlacesName;
}

export type SettingTable = ReturnType<typeof settingTable>;

function settingTable(sql: Sql) {
  return {
    get(name: SettingName): string | undefined {
      return sql.get<SettingRow>('SELECT value FROM settings WHERE name = ?', name)?.value;
    },

    set(name: SettingName, value: string): void {
      if (sql.run('UPDATE settings SET value = ? WHERE name = ?', value, name) > 0) return;
      sql.run('INSERT INTO settings (name, value) VALUES (?, ?)', name, value);
    },

    /** The streaming positions of all targets, past ones included. */
    ofTargets: (): TargetRow[] =>
      sql.all<TargetRow>(`SELECT name, value FROM settings WHERE name GLOB 'activity-to *' ORDER BY seq`),
  };
}
