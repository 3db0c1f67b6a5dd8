// The names that actions have in the activity log: those of the flags without the ring, and a few that need no flag.
import { flagTable } from '../../api/flag-table.ts';

export const actionNames: readonly string[] = [
  ...flagTable.map(({ flag }) => flag.replace('.<ringname>', '')).filter((name) => name !== '*'),
  'session.refresh',
  'session.end',
].sort();
