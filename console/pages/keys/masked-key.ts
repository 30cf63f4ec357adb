const SHOWN = 4

/** A key of which only both ends are readable, so that users recognize it. */
export function maskedKey(key: string): string {
  return `${key.slice(0, 'sk-'.length + SHOWN)}…${key.slice(-SHOWN)}`
}
