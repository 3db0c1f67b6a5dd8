// OpenTofu, whose state is encrypted with a managed key, through Vault's or AWS's API, or with a keyring through a `kms` command.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Desk, expect } from '../desk.ts';
import { goModuleProgram } from '../install.ts';
import { awsKey } from './aws.ts';
import { type Client, scenario } from './client.ts';

export const tofu: Client = {
  name: 'opentofu',
  from: 'Go',
  async install() {
    const version = 'v1.10.6';
    const program = await goModuleProgram('github.com/opentofu/opentofu', version, './cmd/tofu');

    /** Makes a state, reads it back, and changes it after a rotation of the ring; others can't read it. */
    async function appliesTwice(
      desk: Desk,
      name: string,
      keyProvider: string,
      own: Readonly<Record<string, string>>,
      others: Readonly<Record<string, string>>,
      rotate: () => Promise<unknown>,
    ): Promise<void> {
      const kind = keyProvider.split('"')[1] ?? '';
      const cwd = desk.path(name);
      mkdirSync(cwd);
      const env = { ...own, CHECKPOINT_DISABLE: '1', TF_IN_AUTOMATION: '1' };
      const text = `terraform {
  encryption {
    ${keyProvider}
    method "aes_gcm" "kms" {
      keys = key_provider.${kind}.kms
    }
    state {
      method   = method.aes_gcm.kms
      enforced = true
    }
    plan {
      method   = method.aes_gcm.kms
      enforced = true
    }
  }
}
variable "word" {
  default = "first"
}
resource "terraform_data" "secret" {
  input = "hunter2 \${var.word}"
}
output "secret" {
  value = terraform_data.secret.output
}
`;
      desk.write(join(name, 'main.tf'), text);
      const opts = { cwd, env };
      await desk.run(program, ['init', '-no-color'], opts);
      await desk.run(program, ['apply', '-auto-approve', '-no-color'], opts);
      const state = (await desk.run('cat', ['terraform.tfstate'], { cwd })).stdout;
      expect(state, /"encrypted_data"/);
      if (state.includes('hunter2')) throw new Error('the state is in clear');
      await rotate();
      await desk.run(program, ['apply', '-auto-approve', '-no-color', '-var', 'word=second'], opts);
      expect((await desk.run(program, ['output', '-raw', 'secret'], opts)).stdout, /^hunter2 second$/);
      await desk.refused(program, ['output', '-raw', 'secret'], { cwd, env: { ...env, ...others } });
    }

    return {
      version,
      scenarios: [
        scenario('key provider openbao: apply, rotate, apply, read; a wrong token', async (desk) => {
          await desk.kms('key', 'create', 'tofu');
          const { key } = await desk.token('key.tofu.datakey', 'key.tofu.decrypt');
          const provider = `key_provider "openbao" "kms" {\n      key_name = "tofu"\n    }`;
          const rotate = () => desk.kms('key', 'rotate', 'tofu');
          await appliesTwice(desk, 'tofu-openbao', provider, desk.vault(key), desk.vault('kms_wrong'), rotate);
        }),
        scenario('key provider aws_kms: apply, rotate, apply, read; a wrong access key', async (desk) => {
          const { env, arn } = await awsKey(desk, 'tofu-aws');
          const settings = [
            `kms_key_id = "${arn}"`,
            'key_spec = "AES_256"',
            'region = "us-east-1"',
            'skip_credentials_validation = true',
          ];
          const provider = `key_provider "aws_kms" "kms" {\n      ${settings.join('\n      ')}\n    }`;
          const rotate = () => desk.kms('key', 'rotate', 'tofu-aws');
          await appliesTwice(desk, 'tofu-aws', provider, env, await desk.aws('key.list'), rotate);
        }),
        scenario(
          'key provider external, with kms tofu-key: apply, rotate, apply, read; a wrong token',
          async (desk) => {
            await desk.kms('keyring', 'create', 'infra', '--private-key-out', desk.path('infra.key'));
            const { key } = await desk.token('keyring.infra.encrypt', 'keyring.infra.decrypt');
            const command = '["kms", "tofu-key", "--ring", "infra"]';
            const provider = `key_provider "external" "kms" {\n      command = ${command}\n    }`;
            const own = { ...desk.own(key), KMS_PRIVATE_KEY: desk.path('infra.key') };
            const rotate = () => desk.kms('keyring', 'rotate', 'infra');
            await appliesTwice(desk, 'tofu-external', provider, own, { KMS_API_KEY: 'kms_wrong' }, rotate);
          },
        ),
      ],
    };
  },
};
