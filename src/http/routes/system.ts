// Routes of the appliance as a whole.
import type { systemEndpoints } from '../../api/endpoints/system.ts';
import { KmsError } from '../../errors.ts';
import { type RoutesOf, staged } from '../route.ts';

export const systemRoutes: RoutesOf<(typeof systemEndpoints)[number]['id']> = {
  createBackup: staged('createBackup', {
    // Nothing of it is made before the answer is being read, which is after the record of it is durable.
    prepare: async (_input, { deps }) => {
      if (deps.backup) return deps.backup();
      throw new KmsError('unavailable', 'this appliance cannot be backed up');
    },
    run: async (_ctx, _input, backup) => backup,
    answer: (backup) => backup,
  }),
  getMetrics: staged('getMetrics', {
    prepare: async (_input, { deps, handle }) => {
      if (deps.metrics) return deps.metrics(handle);
      throw new KmsError('unavailable', 'this appliance keeps no metrics');
    },
    run: async (_ctx, _input, text) => text,
    answer: (text) => text,
  }),
};
