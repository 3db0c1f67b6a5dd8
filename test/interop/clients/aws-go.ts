// Clients of AWS KMS in Go and Java: AWS's SDKs, HashiCorp's wrapper, and the parts of SeaweedFS and Kroxylicious that
// speak to it.
import { goLibraryProgram, goVersion, mavenProgram } from '../install.ts';
import { awsKey, tokenEnv } from './aws.ts';
import { type Client, scenario } from './client.ts';

export const awsSdkGo: Client = {
  name: 'aws-sdk-go',
  from: 'Go',
  async install() {
    const program = await goLibraryProgram('aws-sdk');
    return {
      version: await goVersion('github.com/aws/aws-sdk-go-v2/service/kms'),
      scenarios: [
        scenario('AWS KMS: keys, messages, a signature, pages, typed errors', async (desk) => {
          await desk.run(program, [], { env: await desk.aws('key.*') });
        }),
        scenario('AWS KMS: credentials for a signed token (STS), with no stored secret', async (desk) => {
          await desk.run(program, [], { env: await tokenEnv(desk, 'go-pod') });
        }),
      ],
    };
  },
};

export const awsWrapping: Client = {
  name: 'go-kms-wrapping-awskms',
  from: 'Go',
  async install() {
    const program = await goLibraryProgram('aws-wrapping');
    return {
      version: await goVersion('github.com/hashicorp/go-kms-wrapping/wrappers/awskms/v2'),
      scenarios: [
        scenario('AWS KMS: HashiCorp’s wrapper: wrap, unwrap after a rotation, what was altered', async (desk) => {
          const { env, arn } = await awsKey(desk, 'wrapping-aws');
          await desk.run(program, [], { env: { ...env, KEY_ARN: arn } });
          await desk.kms('key', 'rotate', 'wrapping-aws');
          await desk.run(program, [], { env: { ...env, KEY_ARN: arn } });
        }),
      ],
    };
  },
};

export const seaweedfs: Client = {
  name: 'seaweedfs',
  from: 'Go',
  async install() {
    const program = await goLibraryProgram('seaweedfs', 'go-seaweedfs');
    return {
      version: await goVersion('github.com/seaweedfs/seaweedfs', 'go-seaweedfs'),
      scenarios: [
        scenario('AWS KMS: its provider for SSE-KMS: data key, unwrap, another object, describe', async (desk) => {
          const { env } = await awsKey(desk, 'seaweedfs');
          await desk.run(program, [], { env: { ...env, KEY: 'alias/seaweedfs' } });
        }),
      ],
    };
  },
};

export const awsSdkJava: Client = {
  name: 'aws-sdk-java',
  from: 'Maven',
  async install() {
    const [java, ...before] = await mavenProgram('AwsKmsCalls');
    return {
      version: '2.57.8',
      scenarios: [
        scenario('AWS KMS: keys, messages, a signature, pages, typed errors', async (desk) => {
          await desk.run(java, before, { env: await desk.aws('key.*') });
        }),
        scenario('AWS KMS: credentials for a signed token (STS), with no stored secret', async (desk) => {
          await desk.run(java, before, { env: await tokenEnv(desk, 'java-pod') });
        }),
      ],
    };
  },
};

export const kroxylicious: Client = {
  name: 'kroxylicious',
  from: 'Maven',
  async install() {
    const [java, ...before] = await mavenProgram('KroxyliciousCalls');
    return {
      version: '0.12.0',
      scenarios: [
        scenario('AWS KMS: its provider: resolve an alias, data keys, unwrap; an unknown alias', async (desk) => {
          await desk.kms('key', 'create', 'kroxylicious');
          // Only those who may read a key are told that there is none.
          const env = await desk.aws('key.kroxylicious.*', 'key.*.read');
          await desk.run(java, before, { env: { ...env, KEY_ALIAS: 'kroxylicious' } });
        }),
      ],
    };
  },
};
