/** A value of a cell. */
export type Cell = string | number | boolean | null

/**
 * Beginnings that a spreadsheet would take for a formula: also in full width, as some of them read it, and
 * behind spaces, controls and separators, at which some of them cut a cell once more. A tab or a line break
 * is none, but nothing begins with it.
 */
const FORMULA = /^[\t\r\n]|^[\s\p{C}\p{Z},;|"]*[=+\-@＝＋－＠]/u

/**
 * A line as RFC 4180 writes it, with its end. A text that a spreadsheet would run as a formula gets an
 * apostrophe in front: names come from users, and the file is opened by somebody else.
 */
export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(written).join(',')}\r\n`
}

function written(cell: Cell): string {
  if (cell === null) return ''
  if (typeof cell !== 'string') return String(cell)
  const harmless = FORMULA.test(cell) ? `'${cell}` : cell
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}
