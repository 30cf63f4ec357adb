import type { ErrorContent } from '../upstream-error.ts'

/** The error object of the chat protocol; `docs/api.md: Envelopes`. */
interface ChatError {
  readonly error: { readonly code: string; readonly message: string; readonly type: string }
}

function chatError({ code, message, type }: ErrorContent): ChatError {
  return { error: { code, message, type } }
}

/** Writes the error as a body. `members` are additional members of the error. */
export function chatErrorBody(parts: ErrorContent, members: Readonly<Record<string, unknown>> = {}): Buffer {
  return Buffer.from(JSON.stringify({ error: { ...chatError(parts).error, ...members } }))
}

/** Writes the error as a frame of a stream. */
export function chatErrorFrame(parts: ErrorContent): Buffer {
  return Buffer.from(`data: ${JSON.stringify(chatError(parts))}\n\n`)
}
