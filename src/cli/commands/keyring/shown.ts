// How a keyring is shown to people.
import type { KeyRing, KeyRingConfig } from '../../../api/keyring.ts';
import type { Pair } from '../../output.ts';
import type { Column } from '../../table.ts';

export function ringPairs(ring: KeyRing): readonly Pair[] {
  return [
    ['name', ring.displayName],
    ['id', ring.id],
    ['active key', ring.activeKey],
    ['algorithm', ring.activeAlgorithm],
    ['public key', ring.publicKey],
    ['props', JSON.stringify(ring.props)],
    ['created', ring.createdAt],
    ['updated', ring.updatedAt],
  ];
}

export const ringColumns: readonly Column<KeyRing>[] = [
  { title: 'name', value: (ring) => ring.displayName, name: true },
  { title: 'id', value: (ring) => ring.id, whole: true },
  { title: 'active key', value: (ring) => ring.activeKey, whole: true, spare: true },
  { title: 'created', value: (ring) => ring.createdAt, whole: true, spare: true },
];

export function configPairs(config: KeyRingConfig): readonly Pair[] {
  return [
    ['encrypts per key', config.algos.aes256.maxEncryptCount],
    ['props', JSON.stringify(config.props)],
    ['props of new keys', JSON.stringify(config.key.props)],
  ];
}
