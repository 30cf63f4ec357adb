/** Kinds of imported rows and entries, as a report names them. */
export type Kind = 'user' | 'token' | 'channel' | 'group' | 'price' | 'option' | 'login' | 'table'

/**
 * Result for a row or an entry: `carried` means imported unchanged, `changed` imported with the changes in its
 * notes, `there` that it existed already, and `left` that it was not imported.
 */
export type ImportOutcome = 'carried' | 'changed' | 'there' | 'left'

/** Line of a report, about one row or entry of the source. */
export interface ReportLine {
  readonly kind: Kind
  /** Id in the source; undefined for entries that have only a name. */
  readonly id: number | undefined
  /** Name in the source, unescaped. */
  readonly name: string
  readonly fate: ImportOutcome
  /** Sentences for the operator, without keys. */
  readonly notes: readonly string[]
  /** Number of items that the line covers, if there are several: rows of a table, users of a login. */
  readonly count?: number
  /** The way out: what the operator can do instead. */
  readonly wayOut?: string
}

/** Makes a line for an imported row: `changed` if there are notes, else `carried`. */
export function importedLine(
  kind: Kind,
  id: number | undefined,
  name: string,
  notes: readonly string[],
): ReportLine {
  return { kind, id, name, fate: notes.length > 0 ? 'changed' : 'carried', notes }
}

/** Escapes an untrusted text for a terminal: one line, no control characters, at most 80 characters. */
export function displayText(text: string): string {
  const flat = JSON.stringify(text).replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?')
  const characters = Array.from(flat)
  return characters.length > 80 ? `${characters.slice(0, 79).join('')}…"` : flat
}
