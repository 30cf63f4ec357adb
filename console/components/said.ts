/** A piece of what somebody said. */
export interface Piece {
  readonly kind: 'text' | 'thinking' | 'call' | 'result' | 'file' | 'other'
  /** The name of a tool, or the type of a file. */
  readonly name: string
  readonly text: string
}

/** What one side said at a time. */
export interface Turn {
  /** `system`, `user`, `assistant`, `tool` … as the request has it. */
  readonly role: string
  readonly pieces: readonly Piece[]
}

/** An object of JSON. */
export type Members = Readonly<Record<string, unknown>>

/** Whether a value is an object of JSON. */
export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The entries of a list that are objects. */
export function objectsIn(value: unknown): Members[] {
  return Array.isArray(value) ? value.filter(isMembers) : []
}

/** A value as text: a text as it is, anything else as JSON. */
export function asText(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value, null, 2)
}

/** A value of JSON; undefined if the text is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
