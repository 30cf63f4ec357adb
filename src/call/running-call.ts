import type { Response } from '@sluice/http1'
import type { ReportedUsage } from '@sluice/wire/reported-usage'
import type { StatedService } from '@sluice/wire/service-tier'
import type { OpenHold } from '../accounts/ledger/open-hold.ts'
import type { ErrorSentToClient } from '../domain/failure-cause.ts'
import type { CallRowFacts } from '../domain/price.ts'
import type { RequestMemory } from '../limits/request-memory.ts'
import type { AttemptLog, UpstreamInterruption } from './attempt-log.ts'
import type { IncomingCall } from './incoming-call.ts'
import type { MediaRequester } from './media-fetcher.ts'
import type { ComparedRequestTexts } from './provider-messages.ts'
import type { AttemptTarget, Plan } from './request-stages.ts'
import type { CallSession } from './session.ts'
import type { TokenCounter } from './token-counter.ts'

/** A call between its admission and its end, as features and prices know it. */
export interface RunningCall extends MediaRequester {
  readonly services: { readonly count: TokenCounter; readonly memory: RequestMemory }
  /** The conversation to which the call belongs; undefined if none is known. */
  readonly session: CallSession | undefined
  readonly incoming: IncomingCall
  readonly response: Response
  readonly hold: OpenHold
  readonly attempts: AttemptLog
  /** Texts of the request. They are removed from the error messages of providers before these are stored. */
  readonly words: ComparedRequestTexts
  /** The plan (model, channels and prices) that is being carried out. */
  readonly plan: Plan
  /** When the first byte of the attempt's response arrived, by `performance.now()`; undefined before. */
  readonly firstByteAt: number | undefined
  /** How the upstream's response broke off; undefined if it did not. */
  readonly cut: UpstreamInterruption | undefined
  /** Whether a user or an administrator stopped the call. */
  readonly isStopped: boolean
  /**
   * Tokens of the sent prompt for the charge. For parts that the request only refers to, the tokens that were
   * estimated at the start are used.
   */
  countChargedPrompt(): Promise<number>
  /** Headers of the response; without `target`, those that are known before an upstream has answered. */
  headers(contentType: string, target: AttemptTarget | undefined): Record<string, string>
  /** How the response was served, by its head and by `stated`, which its body has stated. */
  statedService(stated: StatedService | undefined): StatedService | undefined
  /**
   * Continues with another model at that model's prices. The quota that is reserved for the call covers its
   * most expensive model.
   */
  switchModel(plan: Plan): void
  /** What the row has about the call besides its charge, as it is by now. */
  rowFacts(): CallRowFacts
  /**
   * Warns the operator about tools offered in the request, and models in the `reported` usage, that have no
   * price. Returns whether there are any.
   */
  noteUnlisted(target: AttemptTarget, reported?: ReportedUsage): boolean
  /**
   * Records the error that the client gets, for the call's row in the usage log. Only the first error is
   * recorded.
   */
  noteError(error: ErrorSentToClient): void
}
