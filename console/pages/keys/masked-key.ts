const SHOWN = 4

/** A key of which people recognize the ends. */
export function maskedKey(key: string): string {
  return `${key.slice(0, 'sk-'.length + SHOWN)}…${key.slice(-SHOWN)}`
}
