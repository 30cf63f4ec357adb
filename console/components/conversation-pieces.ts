/** A piece of a message, such as a text, a tool call or a file. */
export interface ConversationPiece {
  readonly kind: 'text' | 'thinking' | 'call' | 'result' | 'file' | 'other'
  /** The name of a tool, or the type of a file. */
  readonly name: string
  readonly text: string
}

/** One message of a conversation. */
export interface ConversationTurn {
  /** The role as the request names it: `system`, `user`, `assistant`, `tool` … */
  readonly role: string
  readonly pieces: readonly ConversationPiece[]
}

export type JsonObject = Readonly<Record<string, unknown>>

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The entries of a list that are objects. */
export function objectsInList(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

/** A value as text: a text as it is, anything else as JSON. */
export function textOrJson(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value, null, 2)
}

/** The JSON value of a text; undefined if the text is not JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
