import classes from './cut-text.module.css'

/** A text of a table that is cut where it is long, with the whole in the tooltip. */
export function CutText({ text }: { readonly text: string }) {
  return (
    <span className={classes['cut']} title={text}>
      {text}
    </span>
  )
}
