/** Returns a JSON object; undefined for anything else. */
export function asRecord(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined
}

/** Parses a JSON object; undefined for any other text. */
export function parseRecord(text: string): Record<string, unknown> | undefined {
  try {
    return asRecord(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** Returns a string; '' for anything else. */
export function textOr(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
