// Rings and keys as the two services answer them.
import type { RingKey } from '../store/tables/ring-keys.ts';
import type { Ring } from '../store/tables/rings.ts';
import type { JsonObject } from './json.ts';
import { timestamp } from './time.ts';

export interface KeyRing {
  readonly id: string;
  readonly name: string;
  readonly displayName: string;
  readonly activeKey: string;
  readonly activeAlgorithm: 'aes256';
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly props: JsonObject;
  readonly publicKey: string;
}

export type AsymKeyRing = Omit<KeyRing, 'props'>;

export interface KeyListItem {
  readonly id: string;
  readonly type: 'aes256';
  readonly props: JsonObject;
}

export interface Key extends KeyListItem {
  readonly keyData: {
    readonly encrypted: { readonly key: { readonly value: string; readonly encoding: 'base64' } };
    readonly iv: string;
  };
}

export interface AsymKey {
  readonly id: string;
  readonly type: 'AES256';
  readonly props: JsonObject;
  readonly keyData: { readonly key: string };
}

export function keyRing(ring: Ring): KeyRing {
  return { ...asymKeyRing(ring), props: ring.props };
}

export function asymKeyRing(ring: Ring): AsymKeyRing {
  return {
    id: ring.id,
    name: ring.name,
    displayName: ring.displayName,
    activeKey: ring.activeKey,
    activeAlgorithm: 'aes256',
    publicKey: ring.publicKey,
    createdAt: timestamp(ring.createdAt),
    updatedAt: timestamp(ring.updatedAt),
  };
}

export function keyListItem(key: Pick<RingKey, 'id' | 'props'>): KeyListItem {
  return { id: key.id, type: 'aes256', props: key.props };
}

export type WrappedKey = Pick<RingKey, 'id' | 'props' | 'wrapped' | 'iv'>;

export function ksKey(key: WrappedKey): Key {
  return {
    id: key.id,
    type: 'aes256',
    props: key.props,
    keyData: { encrypted: { key: { value: key.wrapped, encoding: 'base64' } }, iv: key.iv },
  };
}

export function asymKey(key: WrappedKey): AsymKey {
  return { id: key.id, type: 'AES256', props: key.props, keyData: { key: key.wrapped } };
}
