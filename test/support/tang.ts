// Clients of Tang, as tests need them.
import { createECDH } from 'node:crypto';

/** A client's point, as it is sent to be multiplied: of RFC 7515, A.4. */
export const somePoint = {
  alg: 'ECMR',
  crv: 'P-521',
  key_ops: ['deriveKey'],
  kty: 'EC',
  x: 'AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jSfS9tsz4qUxcWceqwQGk',
  y: 'ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh9ubmf63e3kyMj2',
};

/** Of `somePoint`. */
const scalar = 'AY5pb7A0UFiB3RELSD64fTLOSV_jazdF7fLYyuTw8lOfRhWg6Y6rUrPAxerEzgdRhajnu0ferB0d53vM9mE15j2C';

/** What comes of it with the key that exchanges, as the client knows beforehand: its x. */
export function expectedX(exchange: { readonly x: string; readonly y: string }): string {
  const client = createECDH('secp521r1');
  client.setPrivateKey(Buffer.from(scalar, 'base64url'));
  const point = Buffer.concat([
    Buffer.of(4),
    Buffer.from(exchange.x, 'base64url'),
    Buffer.from(exchange.y, 'base64url'),
  ]);
  return client.computeSecret(point).toString('base64url');
}
