import classes from './truncated-text.module.css'

/**
 * A text in a table. A long text is truncated; the tooltip shows the whole text. A text with `isName`, which is the
 * name of its row or of a model, gets more space in a narrow table. A text with `isList` gets more space in a wide table.
 * An empty text is shown as a dash.
 */
export function TruncatedText({
  text,
  isName,
  isList,
}: {
  readonly text: string
  readonly isName?: true
  readonly isList?: true
}) {
  return (
    <span className={classes['cut']} title={text} data-name={isName} data-list={isList}>
      {text || '–'}
    </span>
  )
}
