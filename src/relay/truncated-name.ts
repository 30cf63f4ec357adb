const MAX_LENGTH = 200

/** A name that a caller sent, short enough to be told back. */
export function truncatedName(name: string): string {
  return name.length <= MAX_LENGTH ? name : `${name.slice(0, MAX_LENGTH)}…`
}
