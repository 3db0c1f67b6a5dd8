// Python for the auditors' programs in the documentation. `scripts/install-python` installs it if it may; if it is
// still missing, the tests that need it report that.
import { spawnSync } from 'node:child_process';

const found = (process.env.KMS_PYTHON ? [process.env.KMS_PYTHON] : ['python3', '/usr/bin/python3']).find(
  (each) => spawnSync(each, ['-c', 'import cryptography.hazmat.primitives.asymmetric.ed25519']).status === 0,
);

/** The command that runs Python. */
export const pythonCommand = found ?? 'python3';

/** The reason to skip tests in Python; false if everything they need is installed. */
export const pythonMissing: string | false =
  found === undefined && 'no python3 with the package cryptography is here (Debian: python3-cryptography; KMS_PYTHON)';

if (pythonMissing) process.stderr.write(`kms: ${pythonMissing}: what verifies in Python is not run\n`);

/** Runs a program with a value as JSON on its stdin; returns the JSON that it prints. */
// biome-ignore lint/suspicious/noExplicitAny: what comes of it is the program's business
export function python(program: string, args: readonly string[], input: unknown): any {
  const { status, stdout, stderr } = spawnSync(pythonCommand, ['-B', '-c', program, ...args], {
    input: JSON.stringify(input),
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(`python3: exit code ${status}: ${stderr}`);
  return JSON.parse(stdout);
}
