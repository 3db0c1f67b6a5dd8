// What the appliance keeps about itself, by name.
import type { Row, Sql } from '../sql.ts';

/**
 * `url`: where clients reached the appliance when it was last served. `epoch`: which life of the appliance this is. `backup`: the last
 * one that was restored on trial.
 */
export type SettingName = 'url' | 'epoch' | 'backup';

interface SettingRow extends Row {
  value: string;
}

export type SettingTable = ReturnType<typeof settingTable>;

export function settingTable(sql: Sql) {
  return {
    async get(name: SettingName): Promise<string | undefined> {
      return (await sql.get<SettingRow>('SELECT value FROM settings WHERE name = ?', name))?.value;
    },

    async set(name: SettingName, value: string): Promise<void> {
      if ((await sql.run('UPDATE settings SET value = ? WHERE name = ?', value, name)) > 0) return;
      await sql.run('INSERT INTO settings (name, value) VALUES (?, ?)', name, value);
    },
  };
}
