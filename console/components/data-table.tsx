import { Fragment, type MouseEvent, type ReactNode, useRef, useState } from 'react'
import classes from './data-table.module.css'
import { useNextRowFocus } from './use-next-row-focus.ts'
import { useHorizontalOverflow } from './use-overflow.ts'

export interface Column<Row> {
  readonly key: string
  readonly label: string
  readonly cell: (row: Row) => ReactNode
  /** Numbers are aligned at the end of their column. */
  readonly isNumber?: boolean
  /**
   * The position of the cell on a phone: at the beginning (`title`) or the end (`value`) of the first line,
   * or below it with its label (`line`).
   */
  readonly phone?: 'title' | 'value' | 'line' | 'hidden' | 'actions'
  /** Whether the column is hidden if the table is narrower than 900 pixels. */
  readonly isOptional?: boolean
  /** Whether the heading of the column is hidden. */
  readonly isLabelHidden?: boolean
  /**
   * Returns the value by which a row is sorted, if the browser sorts this column. The table must then have
   * all rows, not only a page of them.
   */
  readonly sortBy?: (row: Row) => number | string
  /** The name of the field by which the gateway sorts this column. */
  readonly sortField?: string
}

/** The chosen order of rows; `key` names the column, or the field by which the gateway sorts. */
export interface Order {
  readonly key: string
  readonly isDescending: boolean
}

/** The order of rows, if the page stores it. */
export interface Sorting {
  readonly order: Order | undefined
  readonly onOrder: (order: Order) => void
}

/** A table of rows and columns; on a phone, each row has two or three lines. */
export function DataTable<Row>({
  label,
  columns,
  rows,
  keyOf,
  isStale = false,
  foot,
  detail,
  areOpened = false,
  sorting,
}: {
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string | number
  /** Whether newer rows are being loaded. */
  readonly isStale?: boolean
  /** A last row that stays in its place when the rows are sorted, such as the sums. */
  readonly foot?: Row
  /** Returns a line below a row, across all columns; null for no line. */
  readonly detail?: (row: Row) => ReactNode
  /** Whether a click anywhere on a row follows the link of the row that has `data-row-link`. */
  readonly areOpened?: boolean
  /** The order of all pages of the list, if the gateway sorts them. */
  readonly sorting?: Sorting
}) {
  const [ownOrder, setOwnOrder] = useState<Order>()
  const order = sorting ? sorting.order : ownOrder
  const { region, bar } = useHorizontalOverflow()
  const body = useRef<HTMLTableSectionElement>(null)
  const shown = sorting ? rows : sorted(rows, columns, order)
  const onFocus = useNextRowFocus(
    body,
    shown.map((row) => String(keyOf(row))),
  )
  return (
    <>
      <div
        ref={region}
        className={classes['scroll']}
        data-stale={isStale || undefined}
        // With a tab index, the keyboard can scroll the region if the table is wider than the page.
        tabIndex={0}
        role="group"
        aria-label={label}
      >
        {/* Roles are explicit, because browsers remove those of tables with another layout. */}
        <table role="table" aria-label={label} className={classes['table']}>
          <thead role="rowgroup">
            <tr role="row">
              {columns.map((column) => (
                <Heading
                  key={column.key}
                  column={column}
                  field={sorting ? column.sortField : column.sortBy && column.key}
                  order={order}
                  onOrder={sorting?.onOrder ?? setOwnOrder}
                />
              ))}
            </tr>
          </thead>
          <tbody
            role="rowgroup"
            ref={body}
            onFocus={onFocus}
            data-opened={areOpened || undefined}
            // A shortcut for the pointer; with the keyboard, users follow the link in the row.
            onClick={areOpened ? followRowLink : undefined}
          >
            {shown.map((row) => {
              const below = detail?.(row) ?? null
              return (
                <Fragment key={keyOf(row)}>
                  <tr role="row" data-above={below !== null || undefined}>
                    <Cells columns={columns} row={row} />
                  </tr>
                  {below !== null && (
                    <tr role="row" data-detail>
                      <td role="cell" colSpan={columns.length}>
                        <div>{below}</div>
                      </td>
                    </tr>
                  )}
                </Fragment>
              )
            })}
          </tbody>
          {foot !== undefined && (
            <tfoot role="rowgroup">
              <tr role="row">
                <Cells columns={columns} row={foot} />
              </tr>
            </tfoot>
          )}
        </table>
      </div>
      <div ref={bar} className={classes['bar']} tabIndex={-1} aria-hidden>
        <div />
      </div>
    </>
  )
}

function followRowLink({ target }: MouseEvent): void {
  const isSelecting = getSelection()?.isCollapsed === false
  if (!(target instanceof Element) || target.closest('a, button, input') || isSelecting) return
  target.closest('tr')?.querySelector<HTMLElement>('[data-row-link]')?.click()
}

function Heading<Row>({
  column: { label, isNumber, isLabelHidden, isOptional, phone },
  field,
  order,
  onOrder,
}: {
  readonly column: Column<Row>
  /** The field by which a click on the heading sorts; undefined if the column cannot be sorted. */
  readonly field: string | undefined
  readonly order: Order | undefined
  readonly onOrder: (order: Order) => void
}) {
  const isChosen = field !== undefined && order?.key === field
  const direction = order?.isDescending === true ? 'descending' : 'ascending'
  return (
    <th
      role="columnheader"
      scope="col"
      data-number={isNumber || undefined}
      data-phone={phone}
      data-optional={isOptional || undefined}
      aria-sort={isChosen ? direction : undefined}
    >
      {field !== undefined ? (
        <button
          type="button"
          // Numbers are sorted from the largest first.
          onClick={() =>
            onOrder({ key: field, isDescending: isChosen ? !order.isDescending : isNumber === true })
          }
        >
          {label}
        </button>
      ) : (
        <span data-hidden={isLabelHidden || undefined}>{label}</span>
      )}
    </th>
  )
}

function Cells<Row>({ columns, row }: { readonly columns: readonly Column<Row>[]; readonly row: Row }) {
  return columns.map(({ key, label, cell, isNumber, isOptional, phone = 'line' }) => (
    <td
      key={key}
      role="cell"
      data-number={isNumber || undefined}
      data-phone={phone}
      data-optional={isOptional || undefined}
      data-label={label}
    >
      {cell(row)}
    </td>
  ))
}

function sorted<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  order: Order | undefined,
): readonly Row[] {
  const sortBy = columns.find(({ key }) => key === order?.key)?.sortBy
  if (!order || !sortBy) return rows
  const sign = order.isDescending ? -1 : 1
  return rows.toSorted((one, other) => {
    const [a, b] = [sortBy(one), sortBy(other)]
    return a === b ? 0 : a < b ? -sign : sign
  })
}
