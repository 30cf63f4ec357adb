/** Characters of a name that are shown. */
const MAX_LENGTH = 200

/** A name that a client sent, short enough for an error message. */
export function truncatedName(name: string): string {
  return name.length <= MAX_LENGTH ? name : `${name.slice(0, MAX_LENGTH)}…`
}
