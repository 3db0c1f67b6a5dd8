// `kms serve --label`: from the command line, the environment and the file; checked, and changed while it serves.
import assert from 'node:assert/strict';
import { chmod, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { desk } from './kms.ts';
import { serving } from './serving.ts';

const labelAt = async (url: string): Promise<unknown> => (await (await fetch(`${url}/readyz`)).json()).label;

test('the label comes from where every setting comes from, and commands ask with it', async () => {
  await using d = await desk();
  const tty = { stdin: true, stdout: true, stderr: true };
  for (const [args, env, file, label] of [
    [['--label', 'prod', '--label-colour', 'red'], {}, '', { text: 'prod', colour: 'red' }],
    [[], { KMS_LABEL: 'staging 2' }, '', { text: 'staging 2' }],
    [['--config', d.path('kms.yaml')], {}, 'label: test\nlabelColour: green\n', { text: 'test', colour: 'green' }],
    [[], {}, '', undefined],
  ] as const) {
    await writeFile(d.path('kms.yaml'), file);
    await chmod(d.path('kms.yaml'), 0o600);
    const server = await serving(d, args, env);
    assert.deepEqual(await labelAt(server.url), label);
    const { stderr } = await d.kms('account delete admin', { tty, stdin: 'n\n' });
    const question = label ? `On ${label.text}, this deletes the account admin` : 'This deletes';
    assert.ok(
      stderr.startsWith(`admin has 1 API key, which is active, never used; it may do everything.\n${question}`),
      stderr,
    );
    await server.stop();
  }
});

test('a label that is not printable or too long is refused, as is a colour alone or an unknown one', async () => {
  await using d = await desk();
  for (const [args, said] of [
    [['--label', ''], '--label: expected 1 to 24 printable characters, got ""'],
    [['--label', 'x'.repeat(25)], '--label: expected 1 to 24 printable characters'],
    [['--label', 'a\u202eb'], '--label: expected 1 to 24 printable characters'],
    [['--label', 'prod', '--label-colour', 'pink'], '--label-colour: expected red, amber, green, blue or grey'],
    [['--label-colour', 'red'], '--label-colour goes with --label'],
  ] as const) {
    const { code, stderr } = await d.kms(['serve', '--listen', '127.0.0.1:0', ...args]);
    assert.equal(code, 2, stderr);
    assert.ok(stderr.includes(said), stderr);
  }
});
