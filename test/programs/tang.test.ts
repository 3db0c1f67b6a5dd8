// The guide about disks that unlock on the network, typed with Debian's clevis and cryptsetup; and what clevis makes of an
// appliance that is sealed, was killed, or has a forger in between.
import { test } from 'node:test';
import { typePage } from '../docs/typing.ts';

test('docs/guide-tang.md', () => typePage('docs/guide-tang.md'));
