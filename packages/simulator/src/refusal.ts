/** Reasons of a simulated upstream to refuse a request, in any dialect. */
export type RefusalKind =
  | 'missing_key'
  | 'unknown_model'
  | 'unknown_path'
  | 'unknown_response'
  | 'malformed'
  | 'too_large'

/** HTTP status by reason. */
export const REFUSAL_STATUS = {
  missing_key: 401,
  unknown_model: 404,
  unknown_path: 404,
  unknown_response: 400,
  malformed: 400,
  too_large: 413,
} as const satisfies Record<RefusalKind, number>

/** Error of a request; thrown while the request is read, and rendered by its dialect. */
export class Refusal extends Error {
  readonly kind: RefusalKind

  constructor(kind: RefusalKind, message: string) {
    super(message)
    this.name = 'Refusal'
    this.kind = kind
  }
}
