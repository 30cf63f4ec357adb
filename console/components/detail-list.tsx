import type { ReactNode } from 'react'
import classes from './detail-list.module.css'

/** Labels with their values. */
export type DetailRows = readonly (readonly [label: string, value: ReactNode])[]

/** Labels with their values side by side. A row without a value is left out. */
export function DetailList({
  rows,
  labelOf = (label) => label,
  areLabelsLong,
}: {
  readonly rows: DetailRows
  /** Returns what is shown of a label, such as a link. */
  readonly labelOf?: (label: string) => ReactNode
  /** Whether labels, such as names, are wrapped in place of values. */
  readonly areLabelsLong?: boolean
}) {
  return (
    <dl className={classes['rows']} data-long-labels={areLabelsLong}>
      {rows
        .filter(([, value]) => value !== '')
        .map(([label, value]) => (
          <div key={label}>
            <dt>{labelOf(label)}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  )
}
