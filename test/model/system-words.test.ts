// Errors of the operating system are reported in words, whatever their code: a walk over all codes of this system.
import assert from 'node:assert/strict';
import { constants } from 'node:os';
import { test } from 'node:test';
import { getSystemErrorMap, getSystemErrorName } from 'node:util';
import { KmsError, reasonOf, systemCode, systemError, systemRefusal } from '../../src/errors.ts';

/** An error as Node throws it. */
function systemFault(number: number, syscall: string): Error {
  const code = getSystemErrorName(-number);
  return Object.assign(new Error(`${code}: raw text, ${syscall} '/secret/path'`), { code, errno: -number, syscall });
}

/** Codes of calls that the product never makes, or would make wrongly: a defect, best described by the raw text. */
const defects: readonly string[] = [
  ...['EBADF', 'EFAULT', 'EDOM', 'ERANGE', 'EDESTADDRREQ', 'ENOTSOCK', 'EISCONN', 'EALREADY', 'EINPROGRESS'],
  ...['ENOPROTOOPT', 'ESOCKTNOSUPPORT', 'EUNATCH', 'EFTYPE', 'ECHARSET', 'EOF', 'UNKNOWN'],
  // From System V's messages and streams.
  ...['EIDRM', 'ENOMSG', 'ENOSR', 'ENOSTR', 'EMULTIHOP'],
  ...['EAI_BADFLAGS', 'EAI_BADHINTS', 'EAI_CANCELED', 'EAI_FAMILY', 'EAI_OVERFLOW', 'EAI_PROTOCOL'],
  ...['EAI_SERVICE', 'EAI_SOCKTYPE'],
];

test('every code of this system is told in words, by the number too where the runtime has no name for it', () => {
  const told: string[] = [];
  for (const [name, number] of Object.entries(constants.errno)) {
    if (defects.includes(name)) continue;
    for (const syscall of ['open', 'connect']) {
      const error = systemFault(number, syscall);
      const [reason, hint] = systemRefusal(error) ?? [];
      if (!reason || !hint || /\bE[A-Z]{3,}\b|raw text/.test(reasonOf(error))) told.push(`${name} of ${syscall}`);
    }
  }
  assert.deepEqual(told, []);
});

test('every code that the runtime has a name for is told in words', () => {
  const raw = [...getSystemErrorMap().values()]
    .map(([name]) => name)
    .filter((code) => !defects.includes(code))
    .filter((code) => !systemRefusal(Object.assign(new Error('raw'), { code })));
  assert.deepEqual(raw, []);
});

test('codes that the runtime only numbers are known: a quota, a stale handle, a lock, a damaged file system', () => {
  const table: readonly (readonly [number, string])[] = [
    [37, 'ENOLCK'],
    [116, 'ESTALE'],
    [117, 'EUCLEAN'],
    [122, 'EDQUOT'],
    [126, 'ENOKEY'],
    [524, 'ENOTSUPP'],
  ];
  for (const [number, code] of table) assert.equal(systemCode(systemFault(number, 'write')), code);
  assert.equal(reasonOf(systemFault(122, 'write')), 'the quota is used up');
});

test('the same code is told for what was asked: of a file, of a connection, of one of several addresses', () => {
  const { EACCES, ECONNREFUSED } = constants.errno;
  assert.equal(reasonOf(systemFault(EACCES, 'open')), 'permission denied');
  assert.equal(reasonOf(systemFault(EACCES, 'connect')), 'the system does not allow it');
  const all = new AggregateError([systemFault(ECONNREFUSED, 'connect'), systemFault(EACCES, 'connect')], 'all failed');
  assert.equal(reasonOf(all), 'nothing listens there');
});

test('an error of the system is told about a name, without its raw text; others come back as they are', () => {
  const told = systemError(systemFault(constants.errno.EROFS, 'open'), '/data');
  assert.ok(told instanceof KmsError);
  assert.deepEqual([told.code, told.message], ['refused', '/data: the file system is read-only']);
  const own = new KmsError('corrupt', 'x');
  const defect = new TypeError('y');
  assert.deepEqual([systemError(own, 'n'), systemError(defect, 'n')], [own, defect]);
});
