const SHOWN = 4

/** A key that is masked except for its ends, by which users recognize it. */
export function maskedKey(key: string): string {
  return `${key.slice(0, 'sk-'.length + SHOWN)}…${key.slice(-SHOWN)}`
}
