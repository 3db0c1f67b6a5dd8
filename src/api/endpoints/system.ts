// The appliance as a whole, over the network.
import { z } from 'zod';
import { endpoint } from '../endpoint.ts';
import { errorBody } from '../error.ts';

export const systemEndpoints = [
  endpoint('createBackup', {
    changes: false,
    tag: 'System',
    summary: 'Make a backup of the whole appliance, sealed, while it serves',
    access: { kind: 'flag', action: 'system.backup', operator: 'act' },
    answer: z.unknown(),
    binary: true,
    errors: { 503: { description: 'this appliance cannot be backed up right now', schema: errorBody } },
  }),
  endpoint('getMetrics', {
    tag: 'System',
    summary: "The tenant's and the process's numbers, in Prometheus' text format",
    access: { kind: 'flag', action: 'system.metrics', operator: 'look' },
    answer: z.string(),
    text: 'text/plain; version=0.0.4; charset=utf-8',
    errors: { 503: { description: 'this appliance keeps no metrics', schema: errorBody } },
  }),
] as const;
