// Local endpoints that list and change the master key's custodians.
import { z } from 'zod';
import { custodianKinds } from '../../model/custodian-kinds.ts';
import { endpoint, ofAppliance } from '../endpoint.ts';
import type { Sent } from '../endpoints.ts';
import { pathText } from '../values.ts';

const custodianKind = z.enum(custodianKinds);
const custodianParams = z.record(z.string(), z.union([z.string(), z.number(), z.array(z.string())]));
const custodian = z.object({
  id: z.string(),
  kind: custodianKind,
  params: custodianParams,
});
export type CustodianAnswer = Sent<z.output<typeof custodian>>;
const master = z.object({
  applianceId: z.string(),
  fingerprint: z.string(),
  master: z.string().meta({ description: 'the commitment to the master key, 64 hex digits' }),
  custodians: z.array(custodian),
});
export type MasterAnswer = Sent<z.output<typeof master>>;

export const masterEndpoints = [
  endpoint('getMaster', {
    summary: 'Tell the fingerprint of the master key, and who holds it',
    ...ofAppliance,
    answer: master,
  }),
  endpoint('rotateMaster', {
    changes: false,
    summary: 'Make a new master key for the same custodians',
    ...ofAppliance,
    answer: master,
  }),
  endpoint('addCustodian', {
    changes: false,
    summary: 'Add a custodian, whose secret stays with its maker',
    ...ofAppliance,
    body: z.object({
      kind: custodianKind,
      params: custodianParams,
      publicKey: z.string(),
      master: z.string().meta({ description: 'the commitment that the proof is about' }),
      proof: z.string(),
    }),
    answer: master,
  }),
  endpoint('removeCustodian', {
    changes: false,
    summary: 'End a custodian',
    ...ofAppliance,
    params: z.object({ id: pathText }),
    answer: master,
  }),
] as const;
