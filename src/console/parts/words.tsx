// Words is a name that is broken as people would break it: after a dot, slash or hyphen, and inside a part only if that
// is longer than any line should be. Tables are thus never so narrow that they break a word.
export function Words({ text }: { readonly text: string }) {
  return (
    <>
      {partsOf(text).map((part, index) => (
        <span key={index}>
          {index > 0 && <wbr key="break" />}
          <span key="part" data-whole={part.length <= longestWhole ? '' : undefined}>
            {part}
          </span>
        </span>
      ))}
    </>
  );
}

const longestWhole = 24;

/** Each with the separator at its end. */
function partsOf(text: string): readonly string[] {
  return text.match(/[^\s./_:@-]*[\s./_:@-]+|[^\s./_:@-]+$/gu) ?? [text];
}
