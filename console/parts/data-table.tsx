import type { ReactNode } from 'react'
import classes from './data-table.module.css'

/** A column of a table. */
export interface Column<Row> {
  readonly key: string
  readonly label: string
  readonly cell: (row: Row) => ReactNode
  /** Numbers stand at the end of their column. */
  readonly isNumber?: boolean
  /**
   * Where the cell stands on a phone: in the first line at its beginning or end, or with its label in the
   * lines below.
   */
  readonly phone?: 'title' | 'value' | 'line' | 'hidden' | 'actions'
  /** A column without a visible heading. */
  readonly isLabelHidden?: boolean
}

/** Rows in columns; two or three lines a row on a phone. */
export function DataTable<Row>({
  label,
  columns,
  rows,
  keyOf,
  isStale = false,
}: {
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string | number
  /** Whether newer rows are on their way. */
  readonly isStale?: boolean
}) {
  return (
    <div
      className={classes['scroll']}
      data-stale={isStale || undefined}
      // Keyboards scroll it where it is wider than the page.
      tabIndex={0}
      role="group"
      aria-label={label}
    >
      {/* Roles are stated, since browsers drop those of tables that are laid out otherwise. */}
      <table role="table" aria-label={label} className={classes['table']}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map(({ key, label: heading, isNumber, isLabelHidden }) => (
              <th key={key} role="columnheader" scope="col" data-number={isNumber || undefined}>
                <span data-hidden={isLabelHidden || undefined}>{heading}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr role="row" key={keyOf(row)}>
              {columns.map(({ key, label: heading, cell, isNumber, phone = 'line' }) => (
                <td
                  key={key}
                  role="cell"
                  data-number={isNumber || undefined}
                  data-phone={phone}
                  data-label={heading}
                >
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
