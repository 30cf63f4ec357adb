import classes from './cut-text.module.css'

/** A text in a table that is truncated if it is long; the tooltip shows all of it. */
export function CutText({ text }: { readonly text: string }) {
  return (
    <span className={classes['cut']} title={text}>
      {text}
    </span>
  )
}
