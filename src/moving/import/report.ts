/** What is imported, by the names that a report uses. */
export type Kind = 'user' | 'token' | 'channel' | 'group' | 'price' | 'option'

/**
 * What becomes of a row or an entry: it carries over as it is, or with what its notes say, or is there
 * already and stays as it is there, or is left behind.
 */
export type Fate = 'carried' | 'changed' | 'there' | 'left'

/** One row or entry of the source. */
export interface ReportLine {
  readonly kind: Kind
  /** Of the row in the source; undefined for what has only a name. */
  readonly id: number | undefined
  /** As it stands there: to be escaped where it is shown. */
  readonly name: string
  readonly fate: Fate
  /** Sentences, for the operator. They never hold a key. */
  readonly notes: readonly string[]
}

/** A line whose fate follows from its notes: none means that all of it carries over. */
export function carried(
  kind: Kind,
  id: number | undefined,
  name: string,
  notes: readonly string[],
): ReportLine {
  return { kind, id, name, fate: notes.length > 0 ? 'changed' : 'carried', notes }
}

/** A text of anybody's, fit for a terminal: on one line, nothing in it that steers, and not long. */
export function displayText(text: string): string {
  const flat = JSON.stringify(text).replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?')
  const characters = Array.from(flat)
  return characters.length > 80 ? `${characters.slice(0, 79).join('')}…"` : flat
}
