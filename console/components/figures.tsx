import classes from './figures.module.css'

/** A number with its label. */
export interface Figure {
  readonly label: string
  readonly value: string
  /** The exact value, for the tooltip. */
  readonly title?: string | undefined
  /** A second line with an explanation or a part of the number. */
  readonly note?: string | undefined
}

/** Figures side by side, divided by lines. */
export function Figures({ figures }: { readonly figures: readonly Figure[] }) {
  return (
    <dl className={classes['figures']}>
      {figures.map(({ label, value, title, note }) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd title={title}>{value}</dd>
          {note !== undefined && <dd data-note>{note}</dd>}
        </div>
      ))}
    </dl>
  )
}
