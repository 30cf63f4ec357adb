import type { ScannedObject } from '../json-scan.ts'

/** An upper bound in tokens for the prompt of a checked request, without a tokenizer. */
export function promptBound(_scan: ScannedObject): number {
  throw new Error('not yet')
}

/** What a tokenizer counts where the upstream reported nothing. */
export interface PromptText {
  readonly text: string
  /** A flat allowance in tokens for media, message frames and the like: added to the count of `text`. */
  readonly extraTokens: number
}

/** The text of messages and tools of a valid chat request. */
export function promptText(_bytes: Buffer): PromptText {
  throw new Error('not yet')
}
