// The appliance as a whole, over the network.
import { z } from 'zod';
import { endpoint } from '../endpoint.ts';
import { errorBody } from '../error.ts';

export const systemEndpoints = [
  endpoint({
    id: 'createBackup',
    method: 'POST',
    path: '/system/backup',
    changes: false,
    tag: 'System',
    summary: 'Make a backup of the whole appliance, sealed, while it serves',
    access: { kind: 'flag', action: 'system.backup' },
    answer: z.unknown(),
    binary: true,
    errors: { 503: { description: 'this appliance cannot be backed up right now', schema: errorBody } },
  }),
  endpoint({
    id: 'getMetrics',
    method: 'GET',
    path: '/metrics',
    tag: 'System',
    summary: "The tenant's and the process's numbers, in Prometheus' text format",
    access: { kind: 'flag', action: 'system.metrics' },
    answer: z.string(),
    text: 'text/plain; version=0.0.4; charset=utf-8',
    errors: { 503: { description: 'this appliance keeps no metrics', schema: errorBody } },
  }),
] as const;
