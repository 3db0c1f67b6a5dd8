// Approvals as a state machine, against a plain model: rules of one to three words, once or with a window, two callers,
// people who approve, deny, leave and lose their second factors, clocks that go on, and two nodes. Nothing is done
// without its words, no word counts twice, a window never widens; and what has its words is done.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { factorFreshFor, requestLasts } from '../../src/model/approval-rules.ts';
import type { Appliance } from '../support/appliance.ts';
import { type Approver, approver, code, ids, proven } from '../support/approvers.ts';
import { twoNodes } from '../support/nodes.ts';
import { prng } from '../support/prng.ts';
import { makeRule, makeTransit } from './samples.ts';

interface Waiting {
  readonly id: string;
  readonly madeAt: number;
  /** When each came. */
  readonly words: Map<Approver, number>;
  grantedAt: number | undefined;
}

const local = { key: null, env: { local: true } };

class Machine {
  readonly #nodes: readonly [Appliance, Appliance];
  readonly #people: Approver[];
  readonly #callers: readonly string[];
  readonly #path: string;
  readonly #rule: { readonly id: string; readonly window: 'once' | number };
  /** Open requests, by caller. */
  readonly #open = new Map<string, Waiting>();
  #count: number;
  done = 0;

  constructor(from: {
    nodes: readonly [Appliance, Appliance];
    people: Approver[];
    callers: readonly string[];
    path: string;
    rule: { id: string; window: 'once' | number; count: number };
  }) {
    this.#nodes = from.nodes;
    this.#people = from.people;
    this.#callers = from.callers;
    this.#path = from.path;
    this.#rule = from.rule;
    this.#count = from.rule.count;
  }

  static async make(window: 'once' | number, count: number): Promise<Machine> {
    const { a, b } = await twoNodes();
    const people = [await approver(a), await approver(a), await approver(a), await approver(a)];
    const key = await makeTransit(a);
    const terms = { actions: ['key.*.encrypt'], objects: [key.name], approvers: { users: ids(...people) } };
    const rule = await makeRule(a, { ...terms, window, count });
    const callers = [(await a.keyWith('key.*.encrypt')).key, (await a.keyWith('key.*.encrypt')).key];
    b.advance(a.world.now() - b.world.now());
    return new Machine({ nodes: [a, b], people, callers, path: `/managed-keys/${key.name}/encrypt`, rule });
  }

  get #now(): number {
    return this.#nodes[0].world.now();
  }

  advance(milliseconds: number): void {
    for (const node of this.#nodes) node.advance(milliseconds);
  }

  #end(waiting: Waiting): number {
    const { window } = this.#rule;
    const never = Number.POSITIVE_INFINITY;
    const completedAt = this.#isReady(waiting) ? [...waiting.words.values()][this.#count - 1] : undefined;
    const from = Math.min(waiting.grantedAt ?? never, completedAt ?? never);
    const until = from + (window === 'once' ? requestLasts : window * 1000);
    return completedAt === undefined ? Math.min(until, waiting.madeAt + requestLasts) : until;
  }

  #isReady(waiting: Waiting): boolean {
    return waiting.words.size >= this.#count;
  }

  async act(node: 0 | 1, who: number): Promise<void> {
    const key = this.#callers[who] ?? '';
    let waiting = this.#open.get(key);
    if (waiting && this.#now >= this.#end(waiting)) waiting = undefined;
    const isDue = waiting !== undefined && this.#isReady(waiting);
    const body = { items: [{ plaintext: 'aGk=' }] };
    const answer = await this.#nodes[node].call('POST', this.#path, body, { key });
    assert.equal(answer.status, isDue ? 200 : 403, JSON.stringify([answer.body, waiting?.words.size]));
    if (waiting && isDue) {
      this.done++;
      waiting.grantedAt ??= this.#now;
      if (this.#rule.window === 'once') this.#open.delete(key);
      return;
    }
    const { id, given } = answer.body.approval;
    if (waiting) assert.deepEqual([id, given], [waiting.id, Math.min(waiting.words.size, this.#count)]);
    else this.#open.set(key, { id, madeAt: this.#now, words: new Map(), grantedAt: undefined });
  }

  async say(node: 0 | 1, who: number, about: number, verdict: 'approve' | 'deny'): Promise<void> {
    const person = this.#people[who];
    const [key = '', waiting] = [...this.#open][about] ?? [];
    if (!person || !waiting) return;
    this.advance(30_000);
    const isOver = this.#now >= this.#end(waiting);
    const at = this.#nodes[node];
    const url = `/approvals/requests/${waiting.id}/${verdict}`;
    const { status } = await at.call('POST', url, { code: code(at, person) }, { key: person.key });
    // After an hour, sessions have ended.
    const isTaken = status === 200;
    if (isOver || this.#isReady(waiting) || waiting.words.has(person)) assert.equal(isTaken, false);
    if (!isTaken) return;
    if (verdict === 'deny') this.#open.delete(key);
    else waiting.words.set(person, this.#now);
    if (verdict === 'approve' && this.#isReady(waiting)) waiting.grantedAt ??= this.#now;
  }

  /** Somebody leaves, or loses the second factor; their words go along. */
  async lose(who: number, how: 'user' | 'factor'): Promise<void> {
    const person = this.#people[who];
    if (!person) return;
    const { username } = person.user;
    const [a] = this.#nodes;
    if (how === 'user') await a.call('DELETE', `/auth/users/${username}`);
    else await a.call('POST', '/local/reset-second-factor', { username }, local);
    this.#people.splice(who, 1);
    for (const waiting of this.#open.values()) waiting.words.delete(person);
  }

  async recount(count: number): Promise<void> {
    const headers = { 'Kms-Break-Glass': 'test' };
    const [a] = this.#nodes;
    const { status } = await a.call('PATCH', `/approvals/rules/${this.#rule.id}`, { count }, { ...local, headers });
    if (status === 200) this.#count = count;
  }

  /** Verifies an export, which must prove what was done. */
  async prove(): Promise<void> {
    if (this.done === 0) return;
    const { acts } = await proven(this.#nodes[0]);
    assert.equal(acts, this.done);
  }
}

let done = 0;

for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
  test(`approvals keep to the model, from seed ${seed}`, async () => {
    const random = prng(seed);
    const pick = random.int;
    const node = (): 0 | 1 => (pick(2) === 0 ? 0 : 1);
    const machine = await Machine.make(seed % 2 === 0 ? 'once' : 600, 1 + (seed % 3));
    for (let step = 0; step < 60; step++) {
      const dice = pick(100);
      if (dice < 40) await machine.act(node(), pick(2));
      else if (dice < 80) await machine.say(node(), pick(4), pick(2), 'approve');
      else if (dice < 83) await machine.say(node(), pick(4), pick(2), 'deny');
      else if (dice < 93) machine.advance([1000, factorFreshFor, 300_000, 600_000][pick(4)] ?? 0);
      else if (dice < 97) await machine.recount(1 + pick(3));
      else if (dice < 98) await machine.lose(pick(4), pick(2) === 0 ? 'user' : 'factor');
      else await Promise.all([machine.act(0, 0), machine.act(1, 1)]);
    }
    done += machine.done;
    await machine.prove();
  });
}

test('acts were done, in all of it', () => assert.ok(done > 20, `${done}`));
