// What is in the fields of a form, what is missing from it, and how the appliance's words about it are shown.
import type { FormValues, Problems } from './form.tsx';

/** The appliance says what is wrong in lower case and without a full stop. */
export function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
}

export function missingFields(form: HTMLFormElement): Problems {
  const required = [...form.querySelectorAll<HTMLInputElement>('[name][required]')];
  const empty = required.filter(({ type, checked, value }) => (type === 'checkbox' ? !checked : value.trim() === ''));
  return Object.fromEntries(
    empty.map(({ name, type }) => [name, type === 'checkbox' ? 'Tick this first.' : 'This is needed.']),
  );
}

/** Once the fields say what is wrong. */
export function focusFirst(form: HTMLFormElement, problems: Problems): void {
  const fields = [...form.querySelectorAll<HTMLElement>('[name]')];
  fields.find((field) => (field.getAttribute('name') ?? '') in problems)?.focus();
}

export function valuesOf(form: HTMLFormElement): FormValues {
  const data = new FormData(form);
  const exactly = (name: string): string => {
    const value = data.get(name);
    return typeof value === 'string' ? value : '';
  };
  return { exactly, text: (name) => exactly(name).trim(), isOn: (name) => data.has(name) };
}
