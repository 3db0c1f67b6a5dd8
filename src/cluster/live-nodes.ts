// Nodes is the list of nodes that serve from one shared store: each reports every few seconds that it is alive, and
// learns of the others. No stored data depends on it, only limits for a single node: how many wrong guesses it lets
// through, and whether it may change a schema that others must know.
import { KmsError } from '../errors.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import type { Find } from '../platform/finding.ts';
import {
  clockDistance,
  clockLimits,
  type ListedNode,
  type NodeEntry,
  type SharedEngine,
} from '../store/shared/engine.ts';
import { appendRule } from '../store/shared/row.ts';
import { systemMigrations, tenantMigrations } from '../store/tables/migrations.ts';
import { version } from '../version.ts';
import { apartText, clockAdvice } from './database-checks.ts';

interface NodesWorld {
  readonly engine: Pick<SharedEngine, 'noteNode' | 'nodes' | 'forgetNode'>;
  /** The node's own id, stored in its directory. */
  readonly id: string;
  /** Addresses on which it listens. */
  readonly places: readonly string[];
  readonly now: () => number;
  readonly onEvent?: ((event: ApplianceEvent) => void) | undefined;
  /** The schemas that this program knows. Default: its own. */
  readonly schemas?: NodeEntry['schemas'];
  readonly build?: string;
  /** Milliseconds between two signs of life. */
  readonly every?: number;
}

export interface NodeStatus extends ListedNode {
  /** Whether it is the node that answers. */
  readonly own: boolean;
  /** Whether it gave a recent sign of life. */
  readonly live: boolean;
}

/** Milliseconds between two signs of life, and without one until a node counts as gone. */
const usualEvery = 5_000;
const gone = 15_000;

const ownSchemas = (): NodeEntry['schemas'] => ({ system: systemMigrations.length, tenant: tenantMigrations.length });

export class Nodes {
  readonly #world: NodesWorld;
  #listed: readonly ListedNode[] = [];
  #timer: NodeJS.Timeout | undefined;
  #noting: Promise<void> = Promise.resolve();
  #isApart = false;

  private constructor(world: NodesWorld) {
    this.#world = world;
  }

  /** Registers this node. Throws `EngineError`. */
  static async join(world: NodesWorld): Promise<Nodes> {
    const nodes = new Nodes(world);
    await nodes.#note(true);
    nodes.#timer = setInterval(() => {
      // Other users of the database report that it is unreachable; until it is back, the last list counts.
      nodes.#noting = nodes.#noting.then(() => nodes.#note(false)).catch(() => {});
    }, world.every ?? usualEvery).unref();
    return nodes;
  }

  async #note(begins: boolean): Promise<void> {
    const { engine, id, places, now, build = version, schemas = ownSchemas() } = this.#world;
    const asked = now();
    const entry = { id, build, schemas, appendRule, places };
    const { now: theirs, nodes } = await engine.noteNode(entry, begins);
    this.#listed = nodes;
    this.#lookAtClock(clockDistance(theirs, asked, now()));
  }

  #lookAtClock(apart: number): void {
    const { onEvent } = this.#world;
    const isApart = apart >= clockLimits.said;
    if (isApart && !this.#isApart) {
      onEvent?.({ level: 'warn', message: `of the database: ${apartText(apart)}; ${clockAdvice}` });
    } else if (this.#isApart && !isApart) {
      onEvent?.({ level: 'info', message: 'the clock of the database and that of this machine agree again' });
    }
    this.#isApart = isApart;
  }

  /** Number of live nodes, as far as is known: at least this one. */
  get count(): number {
    return Math.max(1, this.#listed.filter(isLive).length);
  }

  /** All nodes as of now, including dead ones, the oldest first. Throws `EngineError`. */
  list(): Promise<readonly NodeStatus[]> {
    return listNodes(this.#world.engine, this.#world.id);
  }

  /**
   * Resolves once every live node knows the newest schemas of this program, so that it may migrate the stores. Reports
   * what it waits for, whenever that changes. Throws `unavailable` once it is `stopping`.
   */
  async allKnowSchemas({ told, stopping, retry = 1_000 }: Waiting = {}): Promise<void> {
    const { schemas = ownSchemas(), onEvent } = this.#world;
    let said: string | undefined;
    for (;;) {
      await this.#note(false);
      const reason = waitsFor(olderThan(schemas, this.#listed));
      if (reason === undefined) return;
      if (said !== reason) {
        said = reason;
        told?.(reason);
        onEvent?.({ level: 'warn', message: reason });
      }
      if (stopping?.aborted) throw new KmsError('unavailable', reason);
      await new Promise<void>((resolve) => setTimeout(resolve, retry));
    }
  }

  /** Removes this node from the list, so that the others need not wait for it to time out. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#noting;
    await this.#world.engine.forgetNode(this.#world.id).catch(() => {});
  }
}

interface Waiting {
  readonly told?: ((reason: string) => void) | undefined;
  readonly stopping?: AbortSignal | undefined;
  readonly retry?: number;
}

function isLive({ age }: ListedNode): boolean {
  return age < gone;
}

/** Throws `refused` if a node serves, or did a moment ago. */
export async function needNobodyServes(engine: Pick<SharedEngine, 'nodes'>): Promise<void> {
  const live = (await engine.nodes()).filter(isLive);
  const [first] = live;
  if (!first) return;
  const where = live.map(({ places }) => places.join(', ')).join('; ');
  throw new KmsError('refused', `${live.length} of the appliance's nodes serve: ${where}`, {
    hint: `stop them all; one that was not stopped properly counts as running for another ${gone / 1000} seconds`,
  });
}

function olderThan({ system, tenant }: NodeEntry['schemas'], nodes: readonly ListedNode[]): readonly ListedNode[] {
  return nodes.filter((node) => isLive(node) && (node.schemas.system < system || node.schemas.tenant < tenant));
}

function waitsFor(older: readonly ListedNode[]): string | undefined {
  if (older.length === 0) return undefined;
  const names = older.map(({ places, id, build }) => `${places.join(', ') || id} (${build})`).join('; ');
  return `the stores wait to be brought up to the schema of this program while older nodes run: ${names}`;
}

/** For a command that is not itself a node. Throws `refused` if live nodes do not know its schemas. */
export async function needSchemasKnown(engine: Pick<SharedEngine, 'nodes'>): Promise<void> {
  const reason = waitsFor(olderThan(ownSchemas(), await engine.nodes()));
  if (reason !== undefined) throw new KmsError('refused', reason, { hint: 'bring the nodes up to date first' });
}

export async function listNodes(engine: Pick<SharedEngine, 'nodes'>, own?: string): Promise<readonly NodeStatus[]> {
  return (await engine.nodes()).map((node) => ({ ...node, own: node.id === own, live: isLive(node) }));
}

/** For `kms doctor`: nodes that disappeared without signing off, and those of another version. */
export function examineNodes(nodes: readonly NodeStatus[], build: string, find: Find): void {
  for (const { id, places, age, live, build: theirs } of nodes) {
    const subject = places.join(', ') || id;
    if (!live) {
      const message = `this node was last heard of ${Math.round(age / 1000)} seconds ago, and did not say that it was stopping`;
      find('warning', 'node-gone', subject, message, 'start it again, or wait a day until it is forgotten');
    } else if (theirs !== build) {
      const advice = 'bring all nodes to one version; it goes on meanwhile';
      find(
        'advice',
        'node-version',
        subject,
        `this node runs version ${theirs}, the one that was asked runs ${build}`,
        advice,
      );
    }
  }
}
