// The name of the service, which leads to its start page. The icon is the one that the page came with.
import { hrefTo } from './address.ts';

const icon = document.querySelector<HTMLImageElement>('header img')?.src ?? '';

export function Brand() {
  return (
    <a href={hrefTo('home')} data-brand>
      <img src={icon} alt="" width="28" height="28" />
      Key management service
    </a>
  );
}
