import type { ImportKind, ReportLine } from '../domain/import-line.ts'

/**
 * Creates the report line of an imported row. Its `fate` is `changed` if there are notes, otherwise
 * `carried`.
 */
export function importedLine(
  kind: ImportKind,
  id: number | undefined,
  name: string,
  notes: readonly string[],
): ReportLine {
  return { kind, id, name, fate: notes.length > 0 ? 'changed' : 'carried', notes }
}

/** Escapes an untrusted text for a terminal: one line, no control characters, at most 80 characters. */
export function escapeForTerminal(text: string): string {
  const flat = JSON.stringify(text).replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?')
  const characters = Array.from(flat)
  return characters.length > 80 ? `${characters.slice(0, 79).join('')}…"` : flat
}
