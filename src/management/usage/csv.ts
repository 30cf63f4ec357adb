/** The value of a cell. */
export type Cell = string | number | boolean | null

/**
 * Prefixes that a spreadsheet may take for a formula: also full-width signs, and signs behind spaces, control
 * characters and separators, at which some spreadsheets split again. Cells may not begin with a tab or a line
 * break either.
 */
const FORMULA = /^[\t\r\n]|^[\s\p{C}\p{Z},;|"]*[=+\-@＝＋－＠]/u

/**
 * A line of RFC 4180, with its line end. A text that a spreadsheet would run as a formula is prefixed with an
 * apostrophe: names come from users, and others open the file.
 */
export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(escaped).join(',')}\r\n`
}

function escaped(cell: Cell): string {
  if (cell === null) return ''
  if (typeof cell !== 'string') return String(cell)
  const harmless = FORMULA.test(cell) ? `'${cell}` : cell
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}
