/** Maximum characters of a name that are shown. */
const MAX_LENGTH = 200

/** Shortens a name from a client for an error message. */
export function truncateName(name: string): string {
  return name.length <= MAX_LENGTH ? name : `${name.slice(0, MAX_LENGTH)}…`
}
