/** What a simulated upstream may refuse, before any protocol's envelope. */
export type RefusalKind = 'missing_key' | 'unknown_model' | 'unknown_path' | 'malformed' | 'too_large'

/** HTTP status of each refusal. */
export const REFUSAL_STATUS = {
  missing_key: 401,
  unknown_model: 404,
  unknown_path: 404,
  malformed: 400,
  too_large: 413,
} as const satisfies Record<RefusalKind, number>

/** Thrown while a request is read; rendered by the protocol in its own envelope. */
export class Refusal extends Error {
  readonly kind: RefusalKind

  constructor(kind: RefusalKind, message: string) {
    super(message)
    this.name = 'Refusal'
    this.kind = kind
  }
}
