/** What a fuzzing process is asked to do. */
export interface FuzzJob {
  /** The name of the target. */
  readonly target: string
  /** The beginning of all chance: the same sources, corpus and seed give the same inputs. */
  readonly seed: number
  /** It ends after so many milliseconds, or so many inputs, whichever comes first. */
  readonly ms?: number
  readonly inputs?: number
  /** The folder of a copy of the program, whose sources are fuzzed instead. */
  readonly root?: string
  /** The kept corpus is replaced by the smallest inputs that reach all that was reached. */
  readonly keep?: boolean
  /** Without it, what is reached counts for nothing. */
  readonly isGuided?: boolean
}

/** What came of it. */
export interface FuzzReport {
  /** Inputs that ran, those of the corpus included. */
  readonly inputs: number
  /** Inputs that reached something new, or were taken in a new way. */
  readonly kept: number
  /** Characters of the sources that were reached. */
  readonly characters: number
  /** Memory of the process at its peak. */
  readonly peakMib: number
  /** The input that broke a promise, made as short as it was found to be, in base64. */
  readonly failure?: { readonly input: string; readonly error: string } | undefined
}
