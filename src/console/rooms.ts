// Every room of the console, in the order of the navigation: an entry for each page that is under itself.

import type { Room } from './room.ts';
import { AboutRoom } from './rooms/about.tsx';
import { ActivityRoom } from './rooms/activity.tsx';
import { ActivityRecordRoom } from './rooms/activity-record.tsx';
import { OverviewRoom } from './rooms/overview.tsx';

export const rooms: readonly Room[] = [
  { page: 'home', component: OverviewRoom, under: 'home' },
  { page: 'activity', component: ActivityRoom, under: 'activity', needs: 'activity.read' },
  { page: 'activityRecord', component: ActivityRecordRoom, under: 'activity' },
  { page: 'about', component: AboutRoom, under: 'about' },
];
