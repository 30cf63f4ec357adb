/** A JSON object whose fields were not checked. */
export type Fields = Readonly<Record<string, unknown>>

/** Returns the value if it is an object, else an empty one. */
export function asFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}

/** Returns the value if it is an array, else an empty one. */
export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Returns the value if it is a string, else an empty one. */
export function asString(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Returns the value if it is a number, else undefined. */
export function asNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}
