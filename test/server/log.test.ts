// The server's log: JSON for programs, a line for people.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog, type LogFormat } from '../../src/server/log.ts';

function logged(format?: LogFormat): { lines: string[]; logger: ReturnType<typeof createLog>['logger'] } {
  const lines: string[] = [];
  const { logger } = createLog('info', (line) => lines.push(line), format);
  return { lines, logger };
}

test('as text: time, level, sentence, and what else is known', () => {
  const { lines, logger } = logged('text');
  logger.info('the backup restores');
  logger.warn({ err: new Error('no\nroom'), file: '/a b', count: 2, to: 'disk' }, 'a backup failed');
  logger.info({ token: 'secret' }, 'nothing secret');
  logger.debug('not shown');
  assert.equal(lines.length, 3);
  assert.match(lines[0] ?? '', /^\d\d:\d\d:\d\d info {2}the backup restores\n$/);
  assert.match(lines[1] ?? '', /^\S+ warn {2}a backup failed: no room file="\/a b" count=2 to=disk\n$/);
  assert.match(lines[2] ?? '', /^\S+ info {2}nothing secret token=\[secret\]\n$/);
});

test('as JSON, unless it is asked for as text or goes to a terminal', () => {
  for (const format of ['json', 'auto', undefined] as const) {
    const { lines, logger } = logged(format);
    logger.info({ count: 2 }, 'counted');
    const { time, ...rest } = JSON.parse(lines[0] ?? '');
    assert.deepEqual(rest, { level: 'info', count: 2, msg: 'counted' });
    assert.match(time, /^\d{4}-.*Z$/);
  }
});
