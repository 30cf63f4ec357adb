/** Codes of errors that codecs find: in a client's request, or in an upstream's response (`upstream_error`). */
export type WireErrorCode = 'invalid_json' | 'invalid_request' | 'model_not_specified' | 'upstream_error'

/** Error: a codec cannot read or convert a request or response. The message is for the client. */
export class WireError extends Error {
  readonly code: WireErrorCode

  constructor(code: WireErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'WireError'
    this.code = code
  }
}
