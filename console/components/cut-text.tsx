import classes from './cut-text.module.css'

/**
 * A text in a table that is truncated if it is long; the tooltip shows all of it. The one that a row is called by,
 * `isName`, has more room in a narrow table than others.
 */
export function CutText({ text, isName }: { readonly text: string; readonly isName?: true }) {
  return (
    <span className={classes['cut']} title={text} data-name={isName}>
      {text}
    </span>
  )
}
