import { randomFrom } from '../fixtures/random.ts'
import { invariant } from './invariant.ts'

/** The parts of an input of any length: a prefix, a piece to repeat, and a suffix. */
export type RepeatedPiece = readonly [before: string, piece: string, after: string]

/** A part of the gateway that reads external bytes. */
export interface Target {
  /** The first inputs, in addition to the corpus. */
  readonly seeds: readonly (string | Buffer)[]
  readonly tokens: readonly string[]
  readonly repeated: readonly RepeatedPiece[]
  /** Maximum size of an input. 4 KiB by default. */
  readonly maxBytes?: number
  /**
   * Throws if a promise is broken; a `GatewayError` is a valid refusal. `random` is seeded by the input. A
   * returned text names the behaviour: an input with a new behaviour is kept like one that reaches new code.
   */
  run(input: Buffer, random: () => number): unknown
}

/** Runs an input, always with the same randomness. */
export async function runTarget(target: Target, input: Buffer): Promise<unknown> {
  const behaviour = await target.run(input, randomFrom(hashOf(input)))
  invariant(Object.keys(Object.prototype).length === 0, 'no input gives all objects a member')
  return behaviour
}

/** FNV-1a hash. */
function hashOf(bytes: Buffer): number {
  let hash = 0x811c9dc5
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash >>> 0
}
