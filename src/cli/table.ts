import { styleText } from 'node:util'
import { characterCount } from '../domain/text-length.ts'
import { plainText } from './plain-text.ts'

/** A column of a table of `Row`s. */
export interface Column<Row> {
  readonly title: string
  readonly cell: (row: Row) => string
  /** Whether cells are aligned to the right, as for numbers. */
  readonly right?: boolean
  /** Whether the cell of a row is highlighted. */
  readonly warns?: (row: Row) => boolean
}

/**
 * Formats rows as a table; each column is as wide as its widest cell. Uses colours if `stream` is a terminal.
 */
export function table<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  stream: NodeJS.WritableStream,
): string {
  const cells = rows.map((row) => columns.map(({ cell }) => plainText(cell(row)).replaceAll('\n', '?')))
  const widths = columns.map(({ title }, index) =>
    Math.max(...[title, ...cells.map((row) => row[index] ?? '')].map(characterCount)),
  )
  const padded = (text: string, index: number): string => {
    const space = ' '.repeat((widths[index] ?? 0) - characterCount(text))
    return columns[index]?.right ? space + text : text + space
  }
  const lines = [
    columns.map(({ title }, index) => styleText('bold', padded(title, index), { stream })),
    ...cells.map((row, at) =>
      row.map((text, index) => {
        const [column, of] = [columns[index], rows[at]]
        const warns = of !== undefined && column?.warns?.(of)
        return warns ? styleText('yellow', padded(text, index), { stream }) : padded(text, index)
      }),
    ),
  ]
  return lines.map((line) => `${line.join('  ').trimEnd()}\n`).join('')
}

/** Formats names and values, one pair a line, with the values below each other. */
export function details(pairs: readonly (readonly [name: string, value: string])[]): string {
  const width = Math.max(...pairs.map(([name]) => characterCount(name)))
  return pairs
    .map(([name, value]) => {
      const space = ' '.repeat(width - characterCount(name))
      return `${name}${space}  ${plainText(value).replaceAll('\n', ' ')}\n`
    })
    .join('')
}
