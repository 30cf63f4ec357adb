/**
 * How errors are sent from a helper: `pack` makes a value that can be posted, and `unpack` makes the error
 * again.
 */
export interface ErrorForm {
  pack(error: unknown): unknown
  unpack(packed: unknown): Error
}

interface PackedError {
  readonly message: string
  readonly stack: string | undefined
}

/** Keeps the message and the stack trace of an error, but not its class. */
export const PLAIN_ERRORS: ErrorForm = {
  pack: (error): PackedError =>
    error instanceof Error
      ? { message: error.message, stack: error.stack }
      : { message: String(error), stack: undefined },
  unpack(packed) {
    const { message, stack } = packed as PackedError
    return Object.assign(new Error(message), stack !== undefined && { stack })
  },
}
