import classes from './key-cell.module.css'

/** The API key in its table column: masked, or in full for half a minute. */
export function KeyCell({
  masked,
  revealed,
}: {
  readonly masked: string
  readonly revealed: string | undefined
}) {
  return <code className={classes['key']}>{revealed ?? masked}</code>
}
