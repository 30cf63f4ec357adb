/** What may be long without end: what is before it, what is repeated, and what comes after. */
export type RepeatedPiece = readonly [before: string, piece: string, after: string]

/** A part of the gateway that outside bytes reach. */
export interface Target {
  /** What its inputs are bred from, beside its corpus. */
  readonly seeds: readonly (string | Buffer)[]
  readonly tokens: readonly string[]
  readonly repeated: readonly RepeatedPiece[]
  /** Bytes that an input has at most; 4 KiB where nothing is said. */
  readonly maxBytes?: number
  /**
   * Fails where it breaks a promise; a refusal in a `GatewayError` is none. `random` is the same for the same
   * input. A text that it returns says in which way the input was taken: an input that is taken in a new way
   * is kept, as one that reaches new code is.
   */
  run(input: Buffer, random: () => number): unknown
}
