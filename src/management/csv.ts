export type Cell = string | number | boolean | null

/**
 * Matches texts that a spreadsheet may take for a formula, including full-width signs, and signs after
 * spaces, control characters and separators, at which some spreadsheets split cells again. Texts that begin
 * with a tab or a line break match too.
 */
const FORMULA = /^[\t\r\n]|^[\s\p{C}\p{Z},;|"]*[=+\-@＝＋－＠]/u

/**
 * A line of a CSV file (RFC 4180), with its line end. An apostrophe is put before a text that a spreadsheet
 * would run as a formula, because users choose such texts and other people open the file.
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
