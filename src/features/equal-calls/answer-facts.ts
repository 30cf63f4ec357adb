import { writeUsageCounts } from '@sluice/wire/chat'
import { parseRecord } from '@sluice/wire/json/record'
import { promptTokens } from '@sluice/wire/usage'
import type { SettlementReason } from '../../domain/call-outcome.ts'
import type { Settlement } from '../../domain/records/usage.ts'
import type { KeptAnswer } from './kept-answers.ts'
import { type BodyForm, CONTENT_TYPES } from './answer-bodies.ts'
import type { SharableCall } from './sharable-call.ts'

/** Values of a charge's `reason` for calls whose answer is complete. */
const WHOLE_REASONS: readonly SettlementReason[] = ['complete', 'estimated']

/** Facts about an answer that is given to other calls. */
export interface AnswerFacts {
  /** Cost of the original call, in quota units. */
  readonly quota: number
  /** Tokens of the original call: prompt plus output. */
  readonly tokens: number
  /** The model that answered. */
  readonly model: string
  /** Form in which the first client got the answer. */
  readonly form: BodyForm
  readonly includeUsage: boolean
  /** Verdicts of the guards that checked the answer; absent if no guard did. */
  readonly guards?: string | undefined
  /** The usage in the format of chat streams; absent for other dialects. */
  readonly usage?: object | undefined
}

/** Facts of a call with a complete answer, for the calls that get it too; undefined for any other call. */
export function answerFactsOfCall(
  settlement: Settlement | undefined,
  { rules, wanted }: SharableCall,
): AnswerFacts | undefined {
  if (!settlement || !WHOLE.has(settlement.reason)) return undefined
  // A guard's service failed. At the next call it may work and refuse the answer, so the answer is not
  // shared.
  if (FAILED_GUARD.test(settlement.guards ?? '')) return undefined
  const { quota, usage, model } = settlement
  return {
    quota,
    tokens: promptTokens(usage) + usage.output,
    model,
    form: wanted.form,
    includeUsage: wanted.includeUsage,
    ...(settlement.guards && { guards: settlement.guards }),
    ...(rules.hasUsageOption && { usage: writeUsageCounts(usage) }),
  }
}

/** Matches a list of guards' verdicts in which a guard's service failed. */
const FAILED_GUARD = /=failed_/

const WHOLE: ReadonlySet<SettlementReason> = new Set(WHOLE_REASONS)

/**
 * The facts stored with a kept answer; undefined if another version of the gateway wrote them in another
 * format.
 */
export function factsOfKeptAnswer({ facts }: KeptAnswer): AnswerFacts | undefined {
  const read = parseRecord(facts) as Partial<AnswerFacts> | undefined
  if (!Number.isSafeInteger(read?.quota) || !Number.isSafeInteger(read?.tokens)) return undefined
  return read?.form !== undefined && read.form in CONTENT_TYPES && typeof read.model === 'string'
    ? (read as AnswerFacts)
    : undefined
}
