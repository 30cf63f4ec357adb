import classes from './cut-text.module.css'

/**
 * A text in a table that is truncated if it is long; the tooltip shows all of it. The one that a row is called by,
 * `isName`, has more room in a narrow table than others, and `isList` more in a wide one.
 */
export function CutText({
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
      {text}
    </span>
  )
}
