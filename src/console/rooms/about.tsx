// What this service is, and who is looking at it.
import { PageHeader } from '../parts/page-header.tsx';
import type { RoomProps } from '../room.ts';

export function AboutRoom({ session }: RoomProps) {
  return (
    <>
      <PageHeader title="About" />
      <p>You are {session.user?.displayName ?? 'using an API key'}.</p>
    </>
  );
}
