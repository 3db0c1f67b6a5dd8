// Invites a user once more who has not come yet: the old link ends, and there is a new one.

import type { User } from '../../api/user.ts';
import type { Client } from '../../client/client.ts';
import { KmsError } from '../../errors.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Form } from '../parts/form.tsx';
import { Secret } from '../parts/secret.tsx';
import { useState } from '../parts/state.ts';

export interface InviteAgainProps {
  readonly api: Client;
  readonly user: User;
  readonly onClose: () => void;
}

export function InviteAgain({ api, user, onClose }: InviteAgainProps) {
  const [link, setLink] = useState<string | undefined>(undefined);
  const [hasCome, setCome] = useState(false);
  const invite = async (): Promise<void> => {
    const { username, email, firstName, lastName } = user;
    try {
      setLink((await api.inviteUser({ username, email, firstName, lastName })).loginUrl);
    } catch (error) {
      // A name that is taken: by this user, who is not waiting for an invitation any more.
      if (!(error instanceof KmsError) || error.fields?.username === undefined) throw error;
      setCome(true);
    }
  };
  const close = (
    <button type="button" data-kind="quiet" onClick={onClose}>
      {link === undefined && !hasCome ? 'Cancel' : 'Close'}
    </button>
  );
  if (hasCome) {
    return (
      <Dialog key="come" title="This user has a password already" onClose={onClose}>
        <p>
          There is nothing to invite them to. If they forgot the password, they can ask for a link on the login page, or
          an operator makes one with <code>kms user reset-link {user.username}</code>.
        </p>
        {close}
      </Dialog>
    );
  }
  if (link !== undefined) {
    return (
      <Dialog key="link" title="The new link" onClose={onClose}>
        <p>
          Give it to <bdi>{user.username}</bdi> and to nobody else. It works once, and is shown this once; the link
          before it works no longer.
        </p>
        <Secret label="Link of the invitation" value={link} />
        {close}
      </Dialog>
    );
  }
  return (
    <Dialog key="ask" title={`Invite ${user.displayName} again?`} onClose={onClose}>
      <p>This makes a new link with which they choose a password. A link that they have already works no longer.</p>
      <Form action="Invite again" busy="Inviting…" onSubmit={invite} beside={close}>
        {null}
      </Form>
    </Dialog>
  );
}
