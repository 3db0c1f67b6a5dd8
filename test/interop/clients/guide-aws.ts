// docs/guide-aws-kms.md, typed with the programs that it needs: its files and its state come from another AWS KMS, moto's.
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stepsOf } from '../../docs/blocks.ts';
import type { Shell } from '../../docs/shell.ts';
import { typeSteps } from '../../docs/typing.ts';
import { goModuleProgram, goProgram, pythonPrograms } from '../install.ts';
import { type Client, scenario } from './client.ts';

const moto = '5.2.5';

export const guideAws: Client = {
  name: 'guide-aws-kms',
  from: 'Go',
  async install() {
    const programs = {
      aws: join(await pythonPrograms('awscli==1.46.3'), 'aws'),
      moto_server: join(await pythonPrograms(`moto[kms,server]==${moto}`), 'moto_server'),
      sops: await goProgram('github.com/getsops/sops/v3/cmd/sops', 'v3.13.3'),
      tofu: await goModuleProgram('github.com/opentofu/opentofu', 'v1.10.6', './cmd/tofu'),
    };
    return {
      version: `with sops v3.13.3, opentofu v1.10.6, awscli 1.46.3, from moto ${moto}`,
      scenarios: [
        scenario('moves a SOPS repository and an OpenTofu state with three lines of environment', async () => {
          const page = readFileSync(new URL('../../../docs/guide-aws-kms.md', import.meta.url), 'utf8');
          await typeSteps('docs/guide-aws-kms.md', stepsOf(page), undefined, { programs, prepare });
        }),
      ],
    };
  },
};

/** Makes what the reader has: an environment for the old KMS, a file that SOPS encrypted with it, and a state. */
async function prepare(shell: Shell): Promise<void> {
  const run = async (command: string): Promise<void> => {
    const { exitCode, output } = await shell.run(command);
    if (exitCode !== 0) throw new Error(`${command}: ${output}`);
  };
  await run(`moto_server -p ${shell.port('4566')} > moto.log 2>&1 &`);
  const region = 'AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1';
  const account = 'AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test';
  await run(`export ${region} ${account} AWS_ENDPOINT_URL_KMS=http://127.0.0.1:4566 CHECKPOINT_DISABLE=1`);
  mkdirSync(join(shell.home, '.aws'));
  const profile = 'aws_access_key_id = test\\naws_secret_access_key = test\\n';
  await run(`printf '[old]\\n${profile}' > ~/.aws/credentials`);
  const services = 'services = old\\n[services old]\\nkms =\\n  endpoint_url = http://127.0.0.1:4566\\n';
  await run(`printf '[profile old]\\nregion = us-east-1\\n${services}' > ~/.aws/config`);
  await run('until aws kms list-keys > listed.json 2>&1; do sleep 1; done');
  await run('aws kms create-key --query KeyMetadata.Arn --output text > old-arn.txt');
  await run('aws kms create-alias --alias-name alias/old --target-key-id "$(cat old-arn.txt)"');
  shell.write('secrets.yaml', 'password: hunter2\n');
  await run('sops encrypt -i --kms "$(cat old-arn.txt)" secrets.yaml');
  shell.write('infra/main.tf', project);
  shell.write('infra/encryption.tf', encryption);
  await run('tofu -chdir=infra init -no-color');
  await run('tofu -chdir=infra apply -auto-approve -no-color');
}

const project = `variable "word" {
  default = "first"
}
resource "terraform_data" "secret" {
  input = "hunter2 \${var.word}"
}
output "secret" {
  value = terraform_data.secret.output
}
`;

const encryption = `terraform {
  encryption {
    key_provider "aws_kms" "old" {
      kms_key_id                  = "alias/old"
      key_spec                    = "AES_256"
      region                      = "us-east-1"
      skip_credentials_validation = true
    }
    method "aes_gcm" "old" {
      keys = key_provider.aws_kms.old
    }
    state {
      method   = method.aes_gcm.old
      enforced = true
    }
  }
}
`;
