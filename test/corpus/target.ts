/** What may be long without end: what is before it, what is repeated, and what comes after. */
export type Grown = readonly [before: string, piece: string, after: string]

/** A pure part of the gateway that outside bytes reach. */
export interface Target {
  /** What its inputs are bred from. */
  readonly seeds: readonly string[]
  readonly tokens: readonly string[]
  readonly grown: readonly Grown[]
  /** Fails where it breaks a promise; a refusal in a `GatewayError` is none. */
  run(input: Buffer, random: () => number): void
}
