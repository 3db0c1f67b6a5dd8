// The machine's clock is set, far ahead or back, and corrected: every wait goes by elapsed time. No wait exceeds its
// maximum, and none is shortened.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tokenVerifier } from '../../src/appliance/token-verifier.ts';
import { UnsealBackoff } from '../../src/custody/unsealer.ts';
import { TangLimits } from '../../src/dialects/tang/limits.ts';
import { KmsError } from '../../src/errors.ts';
import { peopleOf } from '../../src/http/appliance-port.ts';
import { CheckpointRuns } from '../../src/store/checkpoint-runs.ts';
import { testWorld } from '../support/context.ts';
import { pretendHasher } from '../support/pretend-hasher.ts';
import { pretendOidcClient } from '../support/pretend-oidc.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

interface Clock {
  now: number;
  elapsed: number;
}

/** Something that makes callers wait. */
interface Brake {
  /** Uses it up until a caller has to wait. */
  brake(): Promise<void>;
  isFree(): Promise<boolean>;
  /** Milliseconds during which no caller gets through, and after which all do. */
  readonly least: number;
  readonly most: number;
}

const noTokens = tokenVerifier({ now: () => 0, elapsed: () => 0 });
const origin = { tenant: 't', address: '192.0.2.1' };
const env = { remoteAddress: '192.0.2.1' };

const brakes: Readonly<Record<string, (clock: Clock) => Brake>> = {
  'logins with a password': (clock) => {
    const { backoff } = peopleOf(testWorld(clock, 1), {
      hasher: pretendHasher,
      oidc: pretendOidcClient,
      tokens: noTokens,
    });
    const isFree = async () => {
      try {
        (await backoff.begin({ ...origin, name: 'kate' })).abandoned();
        return true;
      } catch {
        return false;
      }
    };
    return {
      brake: () => failing(() => backoff.begin({ ...origin, name: 'kate' }), 5),
      isFree,
      least: 900,
      most: 900_000,
    };
  },
  'logins by AppRole': (clock) => {
    const { appRoleBackoff: backoff } = peopleOf(testWorld(clock, 2), {
      hasher: pretendHasher,
      oidc: pretendOidcClient,
      tokens: noTokens,
    });
    return {
      brake: () => failing(() => backoff.begin(origin), 50),
      isFree: async () => backoff.refusal(origin) === undefined,
      least: 900,
      most: 900_000,
    };
  },
  'unsealing over HTTP': (clock) => {
    const backoff = new UnsealBackoff(testWorld(clock, 3));
    return {
      async brake() {
        for (let tries = 0; tries < 200 && !backoff.refusal(env); tries++) {
          const wrong = (): Promise<never> => Promise.reject(new KmsError('refused', 'wrong'));
          await backoff.run(env, false, wrong).catch(() => {});
        }
      },
      isFree: async () => backoff.refusal(env) === undefined,
      least: 900,
      most: 900_000,
    };
  },
  'mails to reset a password': (clock) => {
    const { resetMails } = peopleOf(testWorld(clock, 4), {
      hasher: pretendHasher,
      oidc: pretendOidcClient,
      tokens: noTokens,
    });
    return {
      async brake() {
        while (resetMails.allows('u'));
      },
      isFree: async () => resetMails.allows('u'),
      least: hour - minute,
      most: hour + 1,
    };
  },
  'recoveries over Tang': (clock) => {
    const limits = new TangLimits(testWorld(clock, 5).elapsed);
    return {
      async brake() {
        while (limits.wait('192.0.2.1') === 0);
      },
      isFree: async () => limits.wait('192.0.2.1') === 0,
      least: 1,
      most: hour,
    };
  },
  'checkpoints behind one that failed': (clock) => {
    let fails = true;
    let ran = 0;
    const { elapsed } = testWorld(clock, 6);
    const limits = { checkpointBytes: 1, checkpointRetry: minute };
    const runs = new CheckpointRuns({ limits, elapsed, onEvent: () => {} }, async () => {
      ran++;
      if (fails) throw new Error('no room');
      return {};
    });
    return {
      async brake() {
        await runs.run().catch(() => {});
        fails = false;
      },
      async isFree() {
        const before = ran;
        runs.startWhenDue(10, 1);
        return ran > before;
      },
      least: minute - 1,
      most: minute,
    };
  },
};

async function failing(begin: () => Promise<{ failed(): void }>, times: number): Promise<void> {
  for (let tries = 0; tries < times; tries++) (await begin()).failed();
}

const jumps = { 'a day ahead': day, 'two hours back': -2 * hour, 'a year ahead': 365 * day, 'to 1970': -1.7e12 };

for (const [what, make] of Object.entries(brakes)) {
  for (const [how, jump] of Object.entries(jumps)) {
    for (const [when, set] of [
      ['before', (at: number) => at === 0],
      ['while somebody waits', (at: number) => at === 1],
      ['and stays so', (at: number) => at === 0 || at === 2],
    ] as const) {
      test(`${what}: the clock is set ${how} ${when}, and nobody waits for it`, async () => {
        const clock: Clock = { now: Date.UTC(2026, 0, 1), elapsed: 5000 };
        const brake = make(clock);
        const [first, second] = [set(0), set(1)];
        if (first) clock.now += jump;
        await brake.brake();
        assert.equal(await brake.isFree(), false, 'it brakes');
        // Corrects the clock, unless the jump is to stay.
        if (first && !set(2)) clock.now -= jump;
        if (second) clock.now += jump;
        clock.elapsed += brake.least - 1;
        clock.now += brake.least - 1;
        if (brake.least > 1) assert.equal(await brake.isFree(), false, 'a clock that is set shortens nothing');
        if (second) clock.now -= jump;
        clock.elapsed += brake.most;
        clock.now += brake.most;
        assert.equal(await brake.isFree(), true, 'the longest wait is over');
      });
    }
  }
}
