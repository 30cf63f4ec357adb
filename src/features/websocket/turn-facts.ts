import type { ProviderEvent } from './provider-frame.ts'

/** What a lane needs to know of a turn. */
export interface TurnFacts {
  /** Id of the answer that the turn goes on from, as the client knows it. */
  readonly previousId: string | undefined
  /** Number of items that the turn adds. */
  readonly items: number
  /** Whether a response is generated. */
  readonly generates: boolean
  /** Whether the turn has no input. Its body then has a text that only passes the check, and that no provider gets. */
  readonly isEmpty: boolean
  /** Events that answer a turn without a response if no provider does. */
  readonly prepared: () => readonly string[]
  /** Set for a turn that steers the one that is running, and follows from it. */
  readonly steering?: Steering
}

/** A turn that follows from a running one. */
interface Steering {
  /** Maximum number of tokens of the running answer that are not among the items of the turn. */
  readonly unfinishedTokens: number
  /** Handles what the provider says of the steer. `runningId`: the provider's id of the answer that was steered. */
  readonly onEvent: (event: ProviderEvent, runningId: string) => void
  /** Called if the same answer is steered once more, so that it is followed by the turn of the later steer. */
  readonly onReplaced: () => void
}
