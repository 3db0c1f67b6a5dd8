// The commands that take keys over from another system: `kms import vault`.
import { command, list, path, required, text, toggle, usually } from './declaration.ts';
import { destroying } from './option-sets.ts';

export const importing = {
  vault: command(
    'vault',
    'take over transit keys from a Vault or OpenBao: they come wrapped, and what they encrypted there opens here; ' +
      'a key that is here already is left alone',
    [
      'kms import vault --address https://vault.example:8200 --token-file vault.token --dry-run',
      'kms import vault --address https://vault.example:8200 --token-file vault.token --key payroll --yes',
      'kms import vault --address https://vault.example:8200 --token-file vault.token --verify samples.txt --yes',
    ],
    {
      '--address': required(text('URL', 'the address of the Vault or OpenBao (required)')),
      '--token-file': required(path('FILE', 'a file with a token for it, which only you can read (required)')),
      '--mount': usually('transit', text('NAME', 'where its transit engine is mounted')),
      '--namespace': text('NAME', 'its namespace'),
      '--ca': path(
        'FILE',
        "certificate authorities to trust for it, PEM (default: the well-known ones and the system's)",
      ),
      '--key': list('NAME', 'only this key'),
      '--prefix': text('TEXT', 'only keys whose names begin so'),
      '--encrypts': list('NAME', 'an RSA key that encrypts here: a key has one purpose, and other RSA keys sign'),
      '--lower-min-decryption': toggle(
        'set min_decryption_version to 1 there while a key is exported, and back: else older versions stay there',
      ),
      '--verify': path('FILE', 'lines of KEY CIPHERTEXT, to see that they open here; also context=BASE64'),
      '--dry-run': toggle('only show what would come, and what cannot'),
      ...destroying,
    },
  ),
};
