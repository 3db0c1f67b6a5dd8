// The pages for people that the appliance serves beside its endpoints, and their titles.

export interface ConsolePage {
  readonly path: string;
  readonly title: string;
}

export const consolePages = {
  home: { path: '/console', title: 'Key management service' },
  invite: { path: '/console/invite', title: 'Your invitation' },
  reset: { path: '/console/reset', title: 'Choose a new password' },
  forgot: { path: '/console/forgot', title: 'Forgot your password?' },
} as const satisfies Readonly<Record<string, ConsolePage>>;

export type ConsolePageName = keyof typeof consolePages;
