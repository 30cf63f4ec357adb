/** Reasons why a simulated upstream refuses a request, in any protocol. */
export type RefusalKind =
  | 'missing_key'
  | 'unknown_model'
  | 'unknown_path'
  | 'unknown_response'
  | 'unknown_object'
  | 'malformed'
  | 'too_large'

/** HTTP status for each reason. */
export const REFUSAL_STATUS = {
  missing_key: 401,
  unknown_model: 404,
  unknown_path: 404,
  unknown_response: 400,
  unknown_object: 404,
  malformed: 400,
  too_large: 413,
} as const satisfies Record<RefusalKind, number>

/** Refusal of a request: thrown while the request is read, and rendered in the format of its protocol. */
export class Refusal extends Error {
  readonly kind: RefusalKind

  constructor(kind: RefusalKind, message: string) {
    super(message)
    this.name = 'Refusal'
    this.kind = kind
  }
}

/** The refusal of a request whose form or values the provider does not accept. */
export function malformed(message: string): Refusal {
  return new Refusal('malformed', message)
}
