// The software bill of materials (SBOM) of the executable as CycloneDX JSON: https://cyclonedx.org/docs/1.6/json/. It
// has no time and no serial number, so that the same sources give the same bytes.
import { Enums, Models, Serialize, Spec } from '@cyclonedx/cyclonedx-library';
import { version } from '../src/version.ts';
import type { ThirdParty } from './third-party.ts';

export function sbom(parts: readonly ThirdParty[]): string {
  const bom = new Models.Bom();
  const product = new Models.Component(Enums.ComponentType.Application, 'kms', {
    version,
    bomRef: `kms@${version}`,
    purl: `pkg:generic/kms@${version}`,
    licenses: new Models.LicenseRepository([new Models.SpdxLicense('Apache-2.0')]),
  });
  bom.metadata.component = product;
  for (const part of parts) {
    const component = componentOf(part);
    bom.components.add(component);
    product.dependencies.add(component.bomRef);
  }
  const serializer = new Serialize.JsonSerializer(new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6));
  return `${serializer.serialize(bom, { sortLists: true, space: 2 })}\n`;
}

function componentOf({ name, version, license, sha512 }: ThirdParty): Models.Component {
  const npm = /^[@a-z]/.test(name);
  const [group, short] = name.startsWith('@') ? name.split('/') : [undefined, name];
  const type = name === 'Node.js' ? Enums.ComponentType.Platform : Enums.ComponentType.Library;
  return new Models.Component(type, short ?? name, {
    ...(group === undefined ? {} : { group }),
    version,
    bomRef: `${name}@${version}`,
    purl: `pkg:${npm ? 'npm' : 'generic'}/${name.toLowerCase().replace('@', '%40')}@${version}`,
    hashes: new Models.HashDictionary(sha512 === undefined ? [] : [[Enums.HashAlgorithm['SHA-512'], sha512]]),
    licenses: new Models.LicenseRepository([licenseOf(license)]),
  });
}

function licenseOf(license: string): Models.License {
  return / (AND|OR|WITH) /.test(license) ? new Models.LicenseExpression(license) : new Models.SpdxLicense(license);
}
