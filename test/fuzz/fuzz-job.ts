import type { Patch } from '../fixtures/patch.ts'

/** Limits of one input; the process is ended beyond them. */
export interface InputBounds {
  /** CPU time in milliseconds, which does not depend on how busy the machine is. */
  readonly cpuMs: number
  /** Memory of the process. The cause may be an earlier input than the reported one. */
  readonly rssMib: number
}

/** The job of one fuzzing process. */
export interface FuzzJob {
  /** The name of the target. */
  readonly target: string
  /** The seed of all randomness: the same sources, corpus and seed give the same inputs. */
  readonly seed: number
  /**
   * The maximum time in milliseconds, and the maximum number of inputs; the first one reached ends the job.
   */
  readonly ms?: number
  readonly inputs?: number
  /** Limits of one input that replace the usual ones. */
  readonly bounds?: InputBounds
  /** Planted defects: the sources are fuzzed with these patches. */
  readonly patches?: readonly Patch[]
  /** Whether to replace the corpus with the smallest inputs that together reach the same code. */
  readonly keep?: boolean
  /** Whether coverage guides the search. True by default. */
  readonly isGuided?: boolean
}

/** Result of a fuzzing process. */
export interface FuzzReport {
  /** Number of inputs that ran, the corpus included. */
  readonly inputs: number
  /** Number of inputs that reached new code or showed a new behaviour. */
  readonly kept: number
  /** Number of characters of the sources that were reached. */
  readonly characters: number
  /** Peak memory of the process. */
  readonly peakMib: number
  /** The input that broke a promise, minimized, in base64. */
  readonly failure?: { readonly input: string; readonly error: string } | undefined
}
