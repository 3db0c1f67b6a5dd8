// All clients, in the order of the report.

import { awscli, awsSdkJs, boto3, encryptionSdk, mongodb, tinkPython } from './aws.ts';
import { awsSdkGo, awsSdkJava, awsWrapping, kroxylicious, seaweedfs } from './aws-go.ts';
import { clevis } from './clevis.ts';
import type { Client } from './client.ts';
import { guideAws } from './guide-aws.ts';
import { hvac } from './hvac.ts';
import { ageOfDebian, ageOfGo, borg, hpke, restic } from './keyrings.ts';
import { barbican, krill, libmongocrypt, pykmip } from './kmip.ts';
import { apiServer, kubernetes } from './kubernetes.ts';
import { mariadb } from './mariadb.ts';
import { openbao } from './openbao.ts';
import { spire } from './spire.ts';
import { spring } from './spring.ts';
import { tofu } from './tofu.ts';
import { tofuProvider } from './tofu-provider.ts';
import { cosign, openbaoLibrary, sops, tink, wrapping } from './transit.ts';

export const clients: readonly Client[] = [
  openbao,
  hvac,
  pykmip,
  barbican,
  libmongocrypt,
  krill,
  sops,
  cosign,
  wrapping,
  tink,
  openbaoLibrary,
  tofu,
  tofuProvider,
  spring,
  ageOfDebian,
  ageOfGo,
  kubernetes,
  restic,
  borg,
  mariadb,
  clevis,
  hpke,
  boto3,
  awsSdkJs,
  awscli,
  encryptionSdk,
  tinkPython,
  mongodb,
  awsSdkGo,
  awsWrapping,
  seaweedfs,
  awsSdkJava,
  kroxylicious,
  guideAws,
  apiServer,
  spire,
];
