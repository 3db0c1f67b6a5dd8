// The Debian package: its file layout, its maintainer scripts and its control file. Written without dpkg, so that it
// can be made on any system.
import { createHash } from 'node:crypto';
import { ar, type Entry, gzip, tar } from './archives.ts';

/** Contents of the packages. */
export interface Parts {
  readonly version: string;
  /** Node's name of the architecture. */
  readonly arch: string;
  readonly executable: Uint8Array;
  readonly unit: string;
  /** The systemd unit of a standby. */
  readonly standbyUnit: string;
  readonly manual: string;
  readonly completions: { readonly bash: string; readonly zsh: string; readonly fish: string };
  /** Licences of everything in the executable. */
  readonly licenses: string;
  readonly sbom: string;
  readonly changelog: string;
}

export interface DebianOptions {
  /** Seconds since 1970. */
  readonly time: number;
  /** Debian revision, counted up when the same version is packaged again. */
  readonly revision: number;
  /** Name and address. */
  readonly maintainer: string;
}

const architectures: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

export function debianPackage(parts: Parts, options: DebianOptions): { readonly name: string; readonly bytes: Buffer } {
  const arch = architectures[parts.arch];
  if (arch === undefined) throw new Error(`there is no Debian for ${parts.arch} that this is made for`);
  const { time, revision, maintainer } = options;
  // In Debian's order a tilde sorts before everything, so that a pre-release sorts before its release.
  const version = `${parts.version.replace('-', '~')}-${revision}`;
  const files = installed(parts, version, options);
  const size = Math.ceil(files.reduce((sum, { bytes }) => sum + (bytes?.length ?? 0), 0) / 1024);
  const md5 = (bytes: Uint8Array): string => createHash('md5').update(bytes).digest('hex');
  const sums = files.flatMap(({ path, bytes }) => (bytes ? [`${md5(bytes)}  ${path}\n`] : [])).join('');
  const text = (path: string, content: string, mode = 0o644): Entry => ({ path, mode, bytes: Buffer.from(content) });
  const control = [
    { path: '.', mode: 0o755 },
    text('control', controlText(version, arch, size, maintainer)),
    text('md5sums', sums),
    text('postinst', postinst, 0o755),
    text('prerm', prerm, 0o755),
    text('postrm', postrm, 0o755),
  ].map((entry) => (entry.path === '.' ? entry : { ...entry, path: `./${entry.path}` }));
  const data = [
    { path: '.', mode: 0o755 },
    ...withDirectories(files).map((each) => ({ ...each, path: `./${each.path}` })),
  ];
  const bytes = ar(
    [
      ['debian-binary', Buffer.from('2.0\n')],
      ['control.tar.gz', gzip(tar(control, time))],
      ['data.tar.gz', gzip(tar(data, time))],
    ],
    time,
  );
  return { name: `kms_${version}_${arch}.deb`, bytes };
}

function installed(parts: Parts, version: string, { time, maintainer }: DebianOptions): Entry[] {
  const file = (path: string, content: string | Uint8Array, mode = 0o644): Entry => ({
    path,
    mode,
    bytes: typeof content === 'string' ? Buffer.from(content) : content,
  });
  const { bash, zsh, fish } = parts.completions;
  const date = new Date(time * 1000).toUTCString().replace('GMT', '+0000');
  const changes =
    `kms (${version}) unstable; urgency=medium\n\n  * Version ${parts.version}: see NEWS.gz beside this file.\n\n` +
    ` -- ${maintainer}  ${date}\n`;
  return [
    file('usr/bin/kms', parts.executable, 0o755),
    file('usr/lib/systemd/system/kms-standby.service', inPlace(parts.standbyUnit)),
    file('usr/lib/systemd/system/kms.service', inPlace(parts.unit)),
    file('usr/share/bash-completion/completions/kms', bash),
    file('usr/share/doc/kms/NEWS.gz', gzip(Buffer.from(parts.changelog))),
    file('usr/share/doc/kms/changelog.Debian.gz', gzip(Buffer.from(changes))),
    file('usr/share/doc/kms/copyright', copyright),
    file('usr/share/doc/kms/kms.cdx.json.gz', gzip(Buffer.from(parts.sbom))),
    file('usr/share/doc/kms/licenses.gz', gzip(Buffer.from(parts.licenses))),
    file('usr/share/fish/vendor_completions.d/kms.fish', fish),
    file('usr/share/man/man1/kms.1.gz', gzip(Buffer.from(parts.manual))),
    file('usr/share/zsh/vendor-completions/_kms', zsh),
  ];
}

function inPlace(unit: string): string {
  return unit.replaceAll('/usr/local/bin/kms', '/usr/bin/kms');
}

function withDirectories(files: readonly Entry[]): Entry[] {
  const all = new Map<string, Entry>();
  for (const file of files) {
    const names = file.path.split('/');
    for (let depth = 1; depth < names.length; depth++) {
      const path = names.slice(0, depth).join('/');
      all.set(path, { path, mode: 0o755 });
    }
    all.set(file.path, file);
  }
  return [...all.values()];
}

/**
 * The control file. Depends on glibc at least as new as Node is built for, and on passwd, whose programs make the user.
 */
function controlText(version: string, arch: string, size: number, maintainer: string): string {
  return `Package: kms
Version: ${version}
Architecture: ${arch}
Maintainer: ${maintainer}
Installed-Size: ${size}
Depends: libc6 (>= 2.28), libgcc-s1, libstdc++6 (>= 9), passwd
Recommends: systemd (>= 250)
Section: admin
Priority: optional
Description: self-hosted key management in one executable
 An appliance that issues encryption keys from keyrings, encrypts and decrypts
 files with them, decides who may, and keeps a chained log of who did. Server,
 command line and console are one program.
 .
 Installing this starts nothing: an appliance is made with "kms init" first,
 and what is to be typed is shown at the end of the installation.
`;
}

const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: kms

Files: *
Copyright: the authors of kms
License: Apache-2.0
 On Debian systems the text of this licence is in
 /usr/share/common-licenses/Apache-2.0.

Files: usr/bin/kms
Copyright: the authors of kms and those whom "kms licenses" names
License: various
 The executable holds Node.js and other work under licences of its own. All
 texts are in licenses.gz beside this file, and shown by "kms licenses".
`;

/**
 * Makes the user and the directories; then prints the next steps, or restarts a running service with the new
 * executable.
 */
const postinst = `#!/bin/sh
set -e

[ "$1" = configure ] || exit 0

if ! getent passwd kms >/dev/null; then
    useradd --system --user-group --home-dir /var/lib/kms --no-create-home --shell /usr/sbin/nologin kms
fi
# What an administrator chose for a directory that is there stays.
[ -d /etc/kms ] || install -d -m 0750 -o root -g kms /etc/kms
[ -d /var/lib/kms ] || install -d -m 0700 -o kms -g kms /var/lib/kms

if [ -d /run/systemd/system ]; then
    systemctl --system daemon-reload >/dev/null || true
    if [ -n "$2" ]; then deb-systemd-invoke try-restart kms.service kms-standby.service >/dev/null || true; fi
fi

if [ ! -e /var/lib/kms/data/kms.seal ]; then
    cat <<'END'
kms: installed; nothing was started, as there is no appliance yet. To make one:
  kms init --data /var/lib/kms/data --key-file /etc/kms/master.key
  chown -R kms:kms /var/lib/kms/data
  systemctl enable --now kms
END
fi
`;

const prerm = `#!/bin/sh
set -e

[ "$1" = remove ] || exit 0
if [ -d /run/systemd/system ]; then
    deb-systemd-invoke stop kms.service kms-standby.service >/dev/null || true
    systemctl --system --no-reload disable kms.service kms-standby.service >/dev/null 2>&1 || true
fi
`;

/** Keys and data belong to the administrator: not even a purge deletes them, and it says so. */
const postrm = `#!/bin/sh
set -e

if [ -d /run/systemd/system ]; then systemctl --system daemon-reload >/dev/null || true; fi

[ "$1" = purge ] || exit 0
rmdir /var/lib/kms /etc/kms 2>/dev/null || true
left=
for each in /var/lib/kms /etc/kms; do
    if [ -e "$each" ]; then left="$left $each"; fi
done
if [ -z "$left" ]; then
    if getent passwd kms >/dev/null; then userdel kms >/dev/null 2>&1 || true; fi
    exit 0
fi
cat <<END
kms: keys and data were not purged: they are still in$left
  Without them nothing that was encrypted with them can be read again, by nobody.
  Once that is meant: rm -r$left && userdel kms
END
`;
