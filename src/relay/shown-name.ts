const SHOWN = 200

/** A name that a caller sent, short enough to be told back. */
export function shownName(name: string): string {
  return name.length <= SHOWN ? name : `${name.slice(0, SHOWN)}…`
}
