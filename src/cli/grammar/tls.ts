// The commands about certificates, `kms tls …`.
import { command, directory, integer, list, required } from './declaration.ts';

export const tls = {
  selfSigned: command(
    'self-signed',
    'make a self-signed certificate and its key, for closed networks',
    ['kms tls self-signed --host kms.example --host 192.0.2.7 --out /etc/kms/tls'],
    {
      '--host': required(list('NAME', 'a host name or address that it is for (required)')),
      '--out': directory('DIR', 'where cert.pem and key.pem go (default: here); neither is overwritten'),
      '--days': integer('N', 'how long it is valid (default: 397)'),
    },
  ),
};
