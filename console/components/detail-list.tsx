import type { ReactNode } from 'react'
import classes from './detail-list.module.css'

/** Labels with their values. */
export type DetailRows = readonly (readonly [label: string, value: ReactNode])[]

/** Labels with their values side by side. A row without a value is left out. */
export function DetailList({ rows }: { readonly rows: DetailRows }) {
  return (
    <dl className={classes['rows']}>
      {rows
        .filter(([, value]) => value !== '')
        .map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  )
}
