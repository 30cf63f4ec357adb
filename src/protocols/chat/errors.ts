/** The chat protocol's error envelope; `docs/api.md: Envelopes`. */
export interface ChatError {
  readonly error: { readonly code: string; readonly message: string; readonly type: string }
}

/** What an envelope is made of. */
export interface ErrorParts {
  readonly type: string
  readonly code: string
  readonly message: string
}

export function chatError(parts: ErrorParts): ChatError {
  return { error: { code: parts.code, message: parts.message, type: parts.type } }
}

/** The envelope as a body. */
export function chatErrorBody(parts: ErrorParts): Buffer {
  return Buffer.from(JSON.stringify(chatError(parts)))
}

/** The envelope as a frame of a stream. */
export function chatErrorFrame(parts: ErrorParts): Buffer {
  return Buffer.from(`data: ${JSON.stringify(chatError(parts))}\n\n`)
}

/** What could be understood of an upstream's error body; `message` is not yet redacted. */
export interface UpstreamErrorText {
  readonly message: string | undefined
  readonly type: string | undefined
  readonly code: string | undefined
}

/** Reads an upstream's error body in whatever shape it came; never throws. */
export function readUpstreamError(_status: number, _bytes: Buffer): UpstreamErrorText {
  throw new Error('not yet')
}
