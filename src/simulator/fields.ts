/** A JSON object whose members nobody has checked yet. */
export type Fields = Readonly<Record<string, unknown>>

/** The value as an object; an empty one for anything else. */
export function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}

/** The value as an array; an empty one for anything else. */
export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** The value as a string; an empty one for anything else. */
export function string(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The value as a number; undefined for anything else. */
export function number(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}
