// Aging is the clock by which data is old enough to be erased for ever: activity past its retention, and rings and
// tenants deleted a while ago. It follows the machine's clock unless that jumps ahead: then it advances with the
// running time of programs, until they have run long enough with the clock ahead that a mistake would have been
// noticed. So a clock that is years ahead for a moment, or at a start, erases nothing. If the machine's clock goes
// back, it follows at once: that only makes data younger.
import type { OpenStatus } from '../api/local/status.ts';
import type { World } from '../core/context.ts';
import { reasonOf } from '../errors.ts';
import { isJsonObject, jsonOf } from '../model/json.ts';
import { notSetting } from '../platform/epoch.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import type { Tenants } from './served-tenants.ts';
import type { SystemStore } from './stores.ts';

interface AgingDeps {
  readonly system: SystemStore;
  readonly tenants: Pick<Tenants, 'all'>;
  readonly world: Pick<World, 'now'>;
  /** Milliseconds of a monotonic clock with any starting point. */
  readonly uptime: () => number;
  readonly onEvent: ((event: ApplianceEvent) => void) | undefined;
  /** Whether writes that can wait must wait. */
  readonly mustWait: () => boolean;
}

/** Stored in the settings, in milliseconds. */
interface Age {
  readonly version: 1;
  /** The age clock at the last look. */
  readonly time: number;
  /** Running time of programs while the machine's clock was ahead of that. */
  readonly ahead: number;
}

/** Throws `corrupt` for anything that `now` does not write. */
function readAge(text: string): Age {
  const value = jsonOf(text);
  const { version, time, ahead } = isJsonObject(value) ? value : {};
  if (version !== 1 || !Number.isFinite(time) || !Number.isFinite(ahead)) throw notSetting(setting);
  return { version, time: Number(time), ahead: Number(ahead) };
}

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
/** Maximum by which the clock may be ahead of its last known time, such as after a night without the machine. */
const slack = day;
/** Running time after which a clock that is further ahead is believed. */
const trial = 7 * day;
const setting = 'age';

export class Aging {
  readonly #deps: AgingDeps;
  readonly #startedAt: number;
  #uptime: number;
  #loading: Promise<Age> | undefined;
  #age: Age | undefined;
  #saved: Age | undefined;
  #isDoubted = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: AgingDeps) {
    this.#deps = deps;
    this.#startedAt = deps.world.now();
    this.#uptime = deps.uptime();
  }

  /** Looks at the clock regularly, so that the running time with it is known. */
  start(): void {
    this.#timer = setInterval(() => void this.now().catch(() => {}), hour).unref();
  }

  /** Whether and for how much longer the clock is doubted; undefined while it is believed. */
  async doubt(): Promise<OpenStatus['clock']> {
    const { time, ahead } = this.#look(await this.#known());
    if (!this.#isDoubted) return undefined;
    const seconds = (span: number): number => Math.max(0, Math.floor(span / 1000));
    return { aheadSeconds: seconds(this.#deps.world.now() - time), believedAfterSeconds: seconds(trial - ahead) };
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.now().catch(() => {});
  }

  /** Epoch milliseconds. Throws the stores' errors. */
  async now(): Promise<number> {
    const age = this.#look(await this.#known());
    if (!this.#deps.mustWait() && this.#isNews(age)) {
      await this.#deps.system.transaction(({ settings }) => settings.set(setting, JSON.stringify(age)));
      this.#saved = age;
    }
    return age.time;
  }

  /** A new doubt is stored at once, since records from then on carry the doubted time. */
  #isNews({ time, ahead }: Age): boolean {
    const saved = this.#saved ?? { time: this.#startedAt, ahead: 0 };
    const isMoved = Math.abs(time - saved.time) >= 10 * minute || Math.abs(ahead - saved.ahead) >= minute;
    return isMoved || (this.#isDoubted && !this.#saved);
  }

  async #known(): Promise<Age> {
    if (!this.#age) {
      this.#loading ??= this.#load();
      try {
        this.#age ??= await this.#loading;
      } finally {
        this.#loading = undefined;
      }
    }
    return this.#age;
  }

  #look(age: Age): Age {
    this.#age = this.#lookFrom(age);
    return this.#age;
  }

  #lookFrom({ time, ahead }: Age): Age {
    const { world, uptime } = this.#deps;
    const clock = world.now();
    const ran = Math.max(0, uptime() - this.#uptime);
    this.#uptime += ran;
    const lived = time + ran;
    const isTried = ahead + ran >= trial;
    if (clock <= lived + slack || isTried) {
      if (this.#isDoubted) this.#say('info', isTried ? 'is believed now' : 'is right again');
      this.#isDoubted = false;
      return { version: 1, time: clock, ahead: 0 };
    }
    if (!this.#isDoubted) {
      const days = Math.floor((clock - lived) / day);
      const until = 'nothing is erased for its age until that has lasted 7 days of running';
      this.#say('warn', `is ${days} days ahead of where it was last seen: ${until}`);
    }
    this.#isDoubted = true;
    return { version: 1, time: lived, ahead: ahead + ran };
  }

  #say(level: 'info' | 'warn', what: string): void {
    this.#deps.onEvent?.({ level, message: `the clock of this machine ${what}` });
  }

  async #load(): Promise<Age> {
    const known = await this.#deps.system.transaction(({ settings }) => settings.get(setting));
    if (known !== undefined) this.#saved = readAge(known);
    if (this.#saved) return this.#saved;
    return { version: 1, time: await this.#lastSeen(), ahead: 0 };
  }

  /** The start value without a stored one: the time of the newest activity record from before this start. */
  async #lastSeen(): Promise<number> {
    let latest: number | undefined;
    for (const { record, handle } of this.#deps.tenants.all) {
      try {
        const { items } = await handle.store.activity.search({ end: this.#startedAt - 1 }, { limit: 1 });
        for (const { createdAt } of items) latest = Math.max(latest ?? 0, createdAt);
      } catch (cause) {
        const message = `the newest activity of ${record.name} could not be read: ${reasonOf(cause)}`;
        this.#deps.onEvent?.({ level: 'warn', message, cause });
        latest ??= 0;
      }
    }
    // An appliance without records has nothing to expire.
    return latest ?? this.#startedAt;
  }
}
