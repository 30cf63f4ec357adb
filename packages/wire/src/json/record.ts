/** Returns the value if it is a JSON object; otherwise undefined. */
export function asRecord(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined
}

/** Parses a JSON object. Returns undefined for any other text. */
export function parseRecord(text: string): Record<string, unknown> | undefined {
  try {
    return asRecord(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** Returns the value if it is a string; otherwise ''. */
export function stringOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
