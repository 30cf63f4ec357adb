import type { Fields } from './field.ts'

/**
 * Texts of the members of a delta, or of a part of a response, that the gateway does not know. A provider may
 * have generated them, so they count by their bytes if it reports no usage. `docs/ledger.md: Outcomes`.
 */
export function unknownTexts(fields: Fields, known: ReadonlySet<string>): readonly string[] {
  let found: string[] | undefined
  for (const name of Object.keys(fields)) {
    if (known.has(name)) continue
    const text = textOf(fields[name])
    if (text !== '') (found ??= []).push(text)
  }
  return found ?? NONE
}

const NONE: readonly string[] = []

/** The text of a value; empty for a value that says nothing, such as null, `false` or an empty list. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) return ''
  return JSON.stringify(value)
}
