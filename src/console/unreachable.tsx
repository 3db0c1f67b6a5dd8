// The state of a page whose request got no answer, or none that helps: it can be sent again.
import { Notice } from './notice.tsx';

export function Unreachable({ text, onRetry }: { readonly text: string; readonly onRetry: () => void }) {
  return (
    <Notice title="That did not work" tone="bad">
      <p>{text}</p>
      <button type="button" onClick={onRetry}>
        Try again
      </button>
    </Notice>
  );
}
