// All tables of a tenant's database, over whatever driver.
import type { Tables } from '../port.ts';
import type { Sql } from '../sql.ts';
import { accountTable } from './accounts.ts';
import { apiKeyTable } from './api-keys.ts';
import { assetTable } from './assets.ts';
import { ringKeyTable } from './ring-keys.ts';
import { ringTable } from './rings.ts';
import { sessionTable } from './sessions.ts';
import { userTokenTable } from './user-tokens.ts';
import { userTable } from './users.ts';

export function tenantTables(sql: Sql): Tables {
  return {
    rings: ringTable(sql),
    ringKeys: ringKeyTable(sql),
    assets: assetTable(sql),
    accounts: accountTable(sql),
    apiKeys: apiKeyTable(sql),
    users: userTable(sql),
    sessions: sessionTable(sql),
    userTokens: userTokenTable(sql),
  };
}
