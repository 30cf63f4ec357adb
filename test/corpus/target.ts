/** An input that can grow without bound: prefix, repeated piece, suffix. */
export type Grown = readonly [before: string, piece: string, after: string]

/** A pure part of the gateway that parses bytes from outside. */
export interface Target {
  /** Seeds of the mutated inputs. */
  readonly seeds: readonly string[]
  readonly tokens: readonly string[]
  readonly grown: readonly Grown[]
  /** Throws where it breaks a promise; a `GatewayError` is a refusal and no fault. */
  run(input: Buffer, random: () => number): void
}
