// Theme is the reader's choice between light and dark colours, or what the system prefers. It is kept in this browser.
const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

export const themeNames: Readonly<Record<Theme, string>> = { system: 'System', light: 'Light', dark: 'Dark' };

const keptAs = 'kms-theme';

export function currentTheme(): Theme {
  const kept = localStorage.getItem(keptAs);
  return themes.find((theme) => theme === kept) ?? 'system';
}

export function setTheme(theme: Theme): void {
  if (theme === 'system') localStorage.removeItem(keptAs);
  else localStorage.setItem(keptAs, theme);
  applyTheme();
}

const conditions: Readonly<Record<Theme, string>> = {
  system: '(prefers-color-scheme: dark)',
  light: 'not all',
  dark: 'screen',
};

let darkRules: readonly CSSMediaRule[] | undefined;

/** Lets the style sheets' rules for dark colours apply always, never, or when the system prefers them. */
export function applyTheme(): void {
  const theme = currentTheme();
  darkRules ??= [...document.styleSheets].flatMap(({ cssRules }) =>
    [...cssRules].filter(
      (rule): rule is CSSMediaRule =>
        rule instanceof CSSMediaRule && rule.conditionText.includes('prefers-color-scheme: dark'),
    ),
  );
  for (const rule of darkRules) rule.media.mediaText = conditions[theme];
  document.documentElement.style.colorScheme = theme === 'system' ? '' : theme;
}
