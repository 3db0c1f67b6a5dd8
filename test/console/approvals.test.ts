// Approvals in words: acts, their consequences and differences, rules as forms fill them in, refusals of acts that wait,
// and records of the activity log.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorOfAnswer } from '../../src/client/failure.ts';
import {
  approvalDetailsOf,
  approvalNoteOf,
  approvalWordsOf,
  waitsForApproval,
} from '../../src/console/activity/approval-words.ts';
import type { ActivityRecord } from '../../src/console/activity/records.ts';
import { outcomeOf, statusText } from '../../src/console/activity/words.ts';
import { actText, consequenceText, missingText, narrowestWindow } from '../../src/console/approvals/act-words.ts';
import { differencesBetween, unseenChanges } from '../../src/console/approvals/differences.ts';
import { actionsOf, actsDraft, ruleActsText, ruleDraftOf, ruleIn } from '../../src/console/approvals/rule-draft.ts';
import { approvalIn, errorText, FieldProblems } from '../../src/console/error-text.ts';
import { actsText } from '../../src/console/flags/abilities.ts';
import { draftOf } from '../../src/console/flags/draft.ts';
import { presets } from '../../src/model/approval-rules.ts';

const key = { type: 'managed-key', id: 'mkey_01kdyak3se5g95x5q7yjatpbf9', name: 'payroll' };
const effects = { changed: [], granted: [], revoked: [], objects: [] };
const shown = { parameters: {}, body: null, further: [] };
const act = (operation: string, recorded: string, more: object = {}) => ({
  ...{ action: recorded, actions: [recorded], operation, object: null, shown, effects },
  statement: JSON.stringify({ recorded, ring: '' }),
  ...more,
});

test('an act is a sentence', () => {
  assert.equal(actText(act('deleteManagedKey', 'key.delete', { object: key })), 'Delete the managed key payroll');
  const unnamed = { type: 'apikey', id: 'apik_01kdyak3se5g95x5q7yjatpbff' };
  assert.equal(actText(act('deleteApiKey', 'apikey.delete', { object: unnamed })), 'Delete the API key …yjatpbff');
  assert.equal(actText(act('restoreManagedKey', 'key.delete', { object: key })), 'Restore the managed key payroll');
  const body = { username: 'mallory', password: { hidden: 'x' } };
  assert.equal(
    actText(act('createUser', 'user.create', { shown: { parameters: {}, body, further: [] } })),
    'Create a user, mallory',
  );
  assert.equal(actText(act('createUser', 'user.create')), 'Create a user');
  assert.equal(actText(act('backup', 'system.backup')), 'Back up the appliance');
  const rule = { type: 'approval-rule', id: 'rule_1', name: 'exports' };
  assert.equal(
    actText(act('deleteApprovalRule', 'approval.rule', { object: rule })),
    'Delete the approval rule exports',
  );
  const ring = { statement: JSON.stringify({ recorded: 'key.export', ring: 'payroll' }) };
  assert.equal(actText(act('exportManagedKey', 'key.export', ring)), 'Export payroll');
});

test('an act that has no words is named by its permission, whatever its statement is', () => {
  for (const statement of ['', 'no JSON', '[]', '{"recorded":7}', '{"recorded":"other.thing"}']) {
    const unknown = act('later', 'other.thing', { statement, action: 'other.payroll.thing' });
    assert.equal(actText(unknown), 'Use the permission other.payroll.thing');
  }
});

test('the consequences of grave acts are told, and that somebody becomes an administrator', () => {
  assert.equal(consequenceText(act('deleteManagedKey', 'key.delete')).length, 1);
  assert.deepEqual(consequenceText(act('listKeyrings', 'keyring.list')), []);
  const [first, ...rest] = consequenceText(
    act('createUser', 'user.create', { effects: { ...effects, granted: ['*'] } }),
  );
  assert.match(first ?? '', /^Somebody gets every permission/);
  assert.deepEqual(rest, []);
  const [again = ''] = consequenceText(act('inviteUser', 'user.invite', { actions: ['user.invite', 'admin.make'] }));
  assert.match(again, /^Somebody may get into a user or API key that has every permission/);
});

test('what changes without a difference to see is listed', () => {
  const seen = differencesBetween({ tags: { a: 1 }, name: 'x' }, { tags: { a: 2 }, name: 'x' });
  assert.deepEqual(unseenChanges(['tags', 'password'], seen), ['password']);
  assert.deepEqual(unseenChanges(['recoveryCodes'], []), ['recoveryCodes']);
});

test('a request is bound by the narrowest window of its rules', () => {
  const rule = { id: 'rule_1', name: '', count: 1, given: 0 };
  const withWindows = (...windows: ('once' | number)[]) =>
    narrowestWindow(windows.map((window) => ({ ...rule, window })));
  assert.equal(withWindows(3600, 300), 300);
  assert.equal(withWindows(3600, 'once'), 'once');
  assert.equal(withWindows(), 'once');
  assert.equal(missingText({ needed: 3, given: 1 }), '2 more approvals');
  assert.equal(missingText({ needed: 1, given: 2 }), '0 more approvals');
});

test('differences are told field by field, and nothing else is', () => {
  const before = { state: 'active', props: { desk: 7, floor: 2 }, flags: ['a'], gone: 1 };
  const after = { state: 'active', props: { floor: 2, desk: 8 }, flags: ['a', 'b'], come: null };
  assert.deepEqual(differencesBetween(before, after), [
    { field: 'props.desk', before: 7, after: 8 },
    { field: 'flags', before: ['a'], after: ['a', 'b'] },
    { field: 'gone', before: 1, after: undefined },
    { field: 'come', before: undefined, after: null },
  ]);
  const parsed = JSON.parse('{"__proto__":{"a":1}}');
  assert.deepEqual(differencesBetween(parsed, {}), [{ field: '__proto__', before: { a: 1 }, after: undefined }]);
  assert.deepEqual(differencesBetween(before, before), []);
});

test('every preset survives the form', () => {
  for (const { name, actions } of presets) {
    assert.deepEqual(actionsOf(actsDraft(actions)).sort(), [...actions].sort(), name);
    assert.notEqual(ruleActsText(actions), '', name);
  }
  assert.deepEqual(actionsOf(actsDraft(['approval.*', 'tenant.delete', '*', 'KEY.Payroll.Export'])).sort(), [
    '*',
    'approval.*',
    'key.payroll.export',
    'tenant.delete',
  ]);
  assert.equal(
    ruleActsText(['keyring.*.delete', 'admin.make', 'tenant.delete']),
    'delete every keyring, now and later; make somebody an administrator, in any way; tenant.delete',
  );
  assert.equal(actsText(draftOf({ '*': true })), 'do anything that takes a permission');
  assert.equal(actsText(draftOf({})), '');
});

const typed = (fields: Record<string, string>) => ({
  text: (name: string) => fields[name] ?? '',
  exactly: (name: string) => fields[name] ?? '',
  firstAt: 0,
  isOn: () => false,
});
const fields = { name: 'exports', flag: 'approval.give', count: '2', window: '3600', objects: '', actions: '' };
const exports = { ...ruleDraftOf(), ...actsDraft(['key.*.export']) };

test('a form about a rule gives what the service takes', () => {
  assert.deepEqual(ruleIn(typed(fields), exports), {
    name: 'exports',
    actions: ['key.*.export'],
    objects: ['*'],
    approvers: { flag: 'approval.give' },
    count: 2,
    mode: 'ask',
    window: 3600,
    breakers: [],
    expires: null,
  });
  const more = {
    ...fields,
    window: 'once',
    objects: 'pay*\n\n mail ',
    actions: 'tenant.delete, system.seal',
    expires: '2026-01-02T03:04',
  };
  const rule = ruleIn(typed(more), { ...exports, by: 'users', users: ['ada'], breakers: ['bob'], mode: 'hold' });
  assert.deepEqual(rule.actions, ['key.*.export', 'tenant.delete', 'system.seal']);
  assert.deepEqual(rule.objects, ['pay*', 'mail']);
  assert.deepEqual(
    [rule.approvers, rule.breakers, rule.mode, rule.window],
    [{ users: ['ada'] }, ['bob'], 'hold', 'once'],
  );
  assert.equal(rule.expires, new Date('2026-01-02T03:04').getTime());
});

test('a form about a rule says at which field it is wrong', () => {
  const wrong = (change: object, draft = exports): string[] => {
    try {
      ruleIn(typed({ ...fields, ...change }), draft);
    } catch (error) {
      assert.ok(error instanceof FieldProblems);
      return Object.keys(error.fields);
    }
    return [];
  };
  assert.deepEqual(wrong({}), []);
  for (const count of ['', '0', '11', '1.5', 'two']) assert.deepEqual(wrong({ count }), ['count'], count);
  assert.deepEqual(wrong({ expires: 'soon' }), ['expires']);
  assert.deepEqual(wrong({}, ruleDraftOf()), ['actions']);
  assert.deepEqual(wrong({}, { ...exports, by: 'users' }), ['approver']);
  const unnamed = {
    ...exports,
    acts: { plain: [], others: [], rings: [{ resource: 'key', ring: '', operations: ['export'] }] },
  };
  assert.deepEqual(wrong({}, unnamed), ['actions']);
});

const refusal = (body: object) => errorOfAnswer(new Response(null, { status: 403 }), body, 'http://kms.test');

test('an act that waits is told as such, with its request', () => {
  const id = 'appr_01kdyak3se5g95x5q7yjatpbfh';
  const waiting = refusal({ message: 'needs approval', approval: { id, needed: 2, given: 1 } });
  assert.deepEqual(approvalIn(waiting), { id, needed: 2, given: 1 });
  assert.equal(
    errorText(waiting),
    'Nothing was done yet: this needs 2 approvals by others and has 1 so far. Try again once it is approved.',
  );
  const message = 'this needs the approval of 2 others: request appr_1 is pending; none of its approvers can';
  assert.equal(
    errorText(refusal({ message, approval: { id, needed: 2, given: 0 } })),
    'Nothing was done yet: this needs 2 approvals by others. None of its approvers can.',
  );
  const one = refusal({ message: 'needs approval', approval: { id, needed: 1, given: 0 } });
  assert.match(errorText(one), /needs 1 approval by others\. Try again/);
  for (const approval of [undefined, null, 'x', {}, { id, needed: '2', given: 0 }]) {
    const other = refusal({ message: 'too many requests wait', approval });
    assert.equal(approvalIn(other), undefined);
    assert.equal(errorText(other), 'Too many requests wait.');
  }
});

const record = (change: object): ActivityRecord => ({
  id: 'act_01kdyak3se5g95x5q7yjatpbfd',
  createdAt: 0,
  keyid: 'user_01kdyak3se5g95x5q7yjatpbf9',
  action: 'key.delete',
  ringname: 'payroll',
  validAction: true,
  status: 200,
  props: {},
  ...change,
});

test('records of approvals are told in words', () => {
  const statement = JSON.stringify({ action: 'key.payroll.delete' });
  const asked = record({
    action: 'approval.request',
    props: { approval: { id: 'appr_1', statement, reason: 'leak' } },
  });
  assert.equal(approvalWordsOf(asked)?.past, 'asked for approval by the');
  assert.deepEqual(approvalDetailsOf(asked, new Map()), ['for key.payroll.delete', '“leak”']);
  assert.equal(approvalNoteOf(asked)?.asked, 'key.payroll.delete');

  const factor = { id: 'fact_1', kind: 'passkey' };
  const signed = record({ action: 'approval.approve', props: { approval: { id: 'appr_1', factor, assertion: {} } } });
  assert.deepEqual(approvalDetailsOf(signed, new Map()), ['signed with a passkey']);
  const coded = record({ action: 'approval.deny', props: { approval: { factor: { kind: 'totp' } } } });
  assert.deepEqual(approvalDetailsOf(coded, new Map()), ['proved by a code']);

  const [ada, bob] = ['user_01kdyak3se5g95x5q7yjatpbf1', 'user_01kdyak3se5g95x5q7yjatpbf2'];
  const rules = [{ words: [ada, bob] }, { words: [bob] }, 'x', { words: 7 }];
  const done = record({ props: { approval: { id: 'appr_1', use: 1, rules } } });
  assert.deepEqual(approvalDetailsOf(done, new Map([[ada, 'ada']])), ['approved by ada and …yjatpbf2']);
  const broken = record({ props: { approval: { glass: 'glass_1', reason: 'fire' } } });
  assert.deepEqual(approvalDetailsOf(broken, new Map()), ['without approval: the glass was broken', '“fire”']);
  assert.deepEqual(approvalDetailsOf(record({}), new Map()), []);
});

test('an act that waits for approval is not told as denied, but a refused word is', () => {
  const waiting = record({ validAction: false, status: 403, props: { approval: { id: 'appr_1' } } });
  assert.equal(waitsForApproval(waiting), true);
  assert.deepEqual([outcomeOf(waiting), statusText(waiting)], ['waiting', 'it needs approval first']);
  assert.equal(outcomeOf({ ...waiting, props: {} }), 'denied');
  assert.equal(outcomeOf({ ...waiting, action: 'approval.approve' }), 'denied');
  const reported = { ...waiting, reporter: 'apik_01kdyak3se5g95x5q7yjatpbff' };
  assert.equal(outcomeOf(reported), 'denied', 'a program may say anything about approvals');
});

test('a rule that was set, changed or deleted is told as that', () => {
  const said = (props: object) => approvalWordsOf(record({ action: 'approval.rule', props }))?.past;
  assert.equal(said({ rule: {}, changed: ['count'] }), 'changed');
  assert.equal(said({ rule: {} }), 'set');
  assert.equal(said({}), 'deleted');
});
