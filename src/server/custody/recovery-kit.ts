// The text of a recovery kit: the code, and what to do with it for somebody who has nothing but a backup and the executable.

export interface KitFacts {
  readonly applianceId: string;
  /** Of its custodian. */
  readonly id: string;
  /** Such as 2026-01-02. */
  readonly day: string;
  readonly code: string;
}

export function recoveryKitText({ applianceId, id, day, code }: KitFacts): string {
  return `RECOVERY KIT OF A KEY-MANAGEMENT APPLIANCE

appliance  ${applianceId}
kit        ${id}
made       ${day}

The code:

    ${code}

With this sheet, a backup and the program kms, everything in the appliance can be had back. No server, no
network, no other key is needed. Put this text, or the line with the code alone, into a file, and run:

    kms restore BACKUP --data NEWDIR --key-file FILE
    kms serve --data NEWDIR --key-file FILE

A copy of the data directory opens the same way, with the second line alone. An appliance that runs and is sealed
opens with:

    kms unseal --key-file FILE

Whoever has this sheet and a backup or the data can read all that the appliance keeps. Print it, keep it in a safe,
apart from the backups. When it is lost or seen, make another with "kms recovery-kit", and end this one with:

    kms master remove-custodian ${id}
    kms master rotate
`;
}
