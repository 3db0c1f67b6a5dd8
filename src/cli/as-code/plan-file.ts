// Saved plans: a plan with the appliance, tenant and caller that it was made for, and a digest over all of it, which
// every change names. What was altered, or belongs elsewhere, is refused.
import { KmsError } from '../../errors.ts';
import { isJsonObject, jsonOf } from '../../model/json.ts';
import { newFile, readSmallText } from '../files.ts';
import { digestOf } from './digest.ts';
import type { PlannedChanges } from './plan.ts';

const format = 'kms-plan-1';
/** Bytes of a plan. */
const longestPlan = 64 * 1024 * 1024;

/** Appliance, tenant and caller that a plan is for. */
interface PlanScope {
  /** Id of the appliance; null if it does not tell. */
  readonly appliance: string | null;
  readonly tenant: string;
  readonly caller: string;
  readonly managedBy: string;
}

export interface Plan extends PlannedChanges, PlanScope {
  readonly format: typeof format;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** SHA-256 over the rest, in hex. */
  readonly digest: string;
}

export function sealedPlan(changes: PlannedChanges, scope: PlanScope, now: number): Plan {
  const plan = { format, createdAt: now, ...scope, ...changes } as const;
  return { ...plan, digest: digestOf(plan) };
}

export async function savePlan(plan: Plan, path: string): Promise<void> {
  const file = await newFile(path, 0o600);
  try {
    await file.handle.writeFile(`${JSON.stringify(plan, null, 2)}\n`);
    await file.commit();
  } catch (error) {
    await file.discard();
    throw error;
  }
}

/** Throws `invalid` for a file that is no plan, `refused` for one that was altered or is for something else. */
export async function readPlan(path: string, scope: Omit<PlanScope, 'managedBy'>): Promise<Plan> {
  const value = jsonOf(await readSmallText(path, 'a plan', longestPlan));
  if (!isJsonObject(value) || value.format !== format || !Array.isArray(value.steps)) {
    throw new KmsError('invalid', `${path} holds no plan`, { hint: '`kms plan -f FILE --out PLAN` saves one' });
  }
  const { digest, ...rest } = value;
  if (digest !== digestOf(rest)) throw refused(path, 'was altered since it was made');
  // Cast: the digest says that it is as it was saved.
  const plan = value as unknown as Plan;
  if (plan.appliance !== scope.appliance) throw refused(path, 'is for another appliance');
  if (plan.tenant !== scope.tenant) throw refused(path, 'is for another tenant');
  if (plan.caller !== scope.caller) throw refused(path, `was made by another caller, ${plan.caller}`);
  return plan;
}

function refused(path: string, why: string): KmsError {
  return new KmsError('refused', `the plan in ${path} ${why}; nothing was done`, {
    hint: 'make a new one with `kms plan`',
  });
}
