// Every endpoint under a rule: asked for, approved and sent again, it is done. Nothing that is new at each try may make
// another act of it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testAppliance } from '../support/appliance.ts';
import { approver, ids, say } from '../support/approvers.ts';
import { sampled, urlOf } from './samples.ts';

for (const window of ['once', 600] as const) {
  test(`whatever is approved can be done, window ${window}`, async () => {
    const done: string[] = [];
    const other: string[] = [];
    for (const { endpoint, make } of sampled) {
      if (endpoint.access.kind !== 'flag') continue;
      const a = await testAppliance();
      const ada = await approver(a);
      const sample = await make(a);
      const body = { name: 'all', actions: ['*'], approvers: { users: ids(ada) }, window };
      // Some samples need a rule of their own for what they are about.
      if ((await a.call('POST', '/approvals/rules', body)).status !== 200) continue;
      const send = () =>
        a.call(endpoint.method, urlOf(endpoint, sample), sample.body, sample.key ? { key: sample.key } : {});
      const asked = await send();
      if (!asked.body?.approval) continue;
      await say(a, ada, asked.body.approval.id);
      const { status } = await send();
      (status < 400 ? done : other).push(endpoint.id);
    }
    assert.deepEqual(other, []);
    assert.ok(done.length > 80, `${done.length} were done`);
  });
}
