// How far the appliance was when this browser last saw it, so that one that was set back is noticed. Nothing of it is secret: it is kept
// where it outlives the window.
import { parseState, type StateMemory } from '../client/rollback.ts';

const nameOf = (appliance: string, tenant: string): string => `kms-state.${appliance}.${tenant}`;

export const localStates: StateMemory = {
  async load(appliance, tenant) {
    return parseState(localStorage.getItem(nameOf(appliance, tenant)));
  },
  async save({ appliance, tenant, epoch, sequence }) {
    localStorage.setItem(nameOf(appliance, tenant), `${appliance}.${tenant}.${epoch}.${sequence}`);
  },
};
