// Versions of the protocol, each as a number of two digits: 14 is 1.4.

import { tags } from './tags.ts';
import { type Item, integer, structure } from './ttlv.ts';

export type Version = number;

/** Newest first, as clients expect them. */
export const supportedVersions: readonly Version[] = [21, 20, 14, 13, 12, 11, 10];

/** The first version whose messages have attributes by their tags. */
const secondGeneration: Version = 20;

export function isSecond(version: Version): boolean {
  return version >= secondGeneration;
}

export function versionItem(version: Version): Item {
  return structure(
    tags.protocolVersion,
    integer(tags.protocolVersionMajor, Math.floor(version / 10)),
    integer(tags.protocolVersionMinor, version % 10),
  );
}
