// HeldDirectory is a data directory that this process holds exclusively, with a whole appliance or as one of its nodes:
// the lock, the files as long as the directory is where it was locked, and the place of the seal, which nodes share.
import { resolve } from 'node:path';
import { type SealPlace, sealInFiles } from '../custody/seal-keeper.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import { filesInPlace } from '../platform/file-ports.ts';
import { type DirectoryLock, lockDirectory } from '../platform/lock.ts';
import { nodeFiles } from '../platform/node-files.ts';
import type { StoreSource } from '../platform/store-url.ts';
import type { Files } from '../store/files.ts';
import type { SharedNode } from './shared-node.ts';

interface Holding {
  readonly data: string;
  /** The database of an appliance that several nodes share. */
  readonly store?: StoreSource | undefined;
  readonly onEvent?: ((event: ApplianceEvent) => void) | undefined;
  /** The address on which this process listens. */
  readonly address?: string | undefined;
  /** Default: the system's clock. */
  readonly world?: { readonly now: () => number } | undefined;
}

export class HeldDirectory {
  readonly root: string;
  readonly files: Files;
  readonly seal: SealPlace;
  /** This process as one of several nodes; undefined if the appliance is in the directory. */
  readonly node: SharedNode | undefined;
  readonly #lock: DirectoryLock;

  /** Throws `in-use` if another process holds it. `serves`: held until released, not just for one command. */
  static async hold({ data, store, onEvent, address, world }: Holding, serves: boolean): Promise<HeldDirectory> {
    const root = resolve(data);
    if (!store) return new HeldDirectory(root, lockDirectory(root));
    // Loaded only if it is used.
    const { holdNodeDirectory, SharedNode } = await import('./shared-node.ts');
    const { lock, giveUp } = await holdNodeDirectory(root);
    let node: SharedNode | undefined;
    try {
      node = await SharedNode.connect(store);
      const now = world?.now ?? Date.now;
      // A short command leaves it to the server to report unchanged facts.
      await node.enter(root, serves ? { now, onEvent, address } : { now });
      return new HeldDirectory(root, lock, node);
    } catch (error) {
      await node?.close();
      await giveUp();
      throw error;
    }
  }

  private constructor(root: string, lock: DirectoryLock, node?: SharedNode) {
    this.root = root;
    this.files = filesInPlace(nodeFiles(root, { ofItsOwner: true }), () => lock.needInPlace());
    this.seal = node?.seal ?? sealInFiles(this.files, root);
    this.node = node;
    this.#lock = lock;
  }

  /** The number of nodes that serve the appliance. */
  get nodes(): number {
    return this.node?.nodes?.count ?? 1;
  }

  isInPlace(): boolean {
    return this.#lock.isInPlace();
  }

  /** Throws `unavailable` if the directory was moved away or replaced. */
  needInPlace(): void {
    this.#lock.needInPlace();
  }

  async release(): Promise<void> {
    try {
      await this.node?.close();
    } finally {
      this.#lock.release();
    }
  }
}

/** Whether the appliance was sealed on purpose; asked without holding or changing anything. */
export async function wasSealedOnPurpose({ data, store }: Pick<Holding, 'data' | 'store'>): Promise<boolean> {
  if (!store) return sealInFiles(nodeFiles(resolve(data)), data).isOnPurpose();
  const { SharedNode } = await import('./shared-node.ts');
  const node = await SharedNode.connect(store);
  return node.seal.isOnPurpose().finally(() => node.close());
}
