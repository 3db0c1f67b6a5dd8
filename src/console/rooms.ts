// Every room of the console, in the order of the navigation: an entry for each page that is under itself.

import type { Room } from './room.ts';
import { AboutRoom } from './rooms/about.tsx';

export const rooms: readonly Room[] = [{ page: 'about', component: AboutRoom, under: 'about' }];
