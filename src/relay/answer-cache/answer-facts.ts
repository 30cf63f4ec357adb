import { writeUsageCounts } from '@sluice/wire/chat'
import { parseRecord } from '@sluice/wire/json/record'
import { promptTokens } from '@sluice/wire/usage'
import type { SettlementReason } from '../../domain/call-outcome.ts'
import type { KeptAnswer } from '../../domain/kept-answer.ts'
import type { Settlement } from '../../domain/records/usage.ts'
import { type BodyForm, CONTENT_TYPES } from './answer-bodies.ts'
import type { SharableCall } from './sharable-call.ts'

/** Reasons of calls that came to their own end. */
const WHOLE_REASONS: readonly SettlementReason[] = ['complete', 'estimated']

/** What is known of a call whose answer is given to others. */
export interface AnswerFacts {
  /** What it cost, in quota units. */
  readonly quota: number
  /** Its tokens, prompt and output. */
  readonly tokens: number
  /** The model that answered. */
  readonly model: string
  /** Form in which its client got the answer. */
  readonly form: BodyForm
  readonly includeUsage: boolean
  /** Verdicts of the guards that checked it; absent if none did. */
  readonly guards?: string | undefined
  /** The usage as streams of chat state it; absent in other dialects. */
  readonly usage?: object | undefined
}

/** What is told to others of a call that came to its end; undefined of any other. */
export function factsOf(
  settlement: Settlement | undefined,
  { equal, wanted }: SharableCall,
): AnswerFacts | undefined {
  if (!settlement || !WHOLE.has(settlement.reason)) return undefined
  // The service may decide about the next one.
  if (FAILED_GUARD.test(settlement.guards ?? '')) return undefined
  const { quota, usage, model } = settlement
  return {
    quota,
    tokens: promptTokens(usage) + usage.output,
    model,
    form: wanted.form,
    includeUsage: wanted.includeUsage,
    ...(settlement.guards && { guards: settlement.guards }),
    ...(equal.keeping.hasUsageOption && { usage: writeUsageCounts(usage) }),
  }
}

/** A verdict of a guard whose service failed, in a list of verdicts. */
const FAILED_GUARD = /=failed_/

const WHOLE: ReadonlySet<SettlementReason> = new Set(WHOLE_REASONS)

/** The facts of a kept answer, as another version of the gateway may have written them. */
export function factsIn({ facts }: KeptAnswer): AnswerFacts | undefined {
  const read = parseRecord(facts) as Partial<AnswerFacts> | undefined
  if (!Number.isSafeInteger(read?.quota) || !Number.isSafeInteger(read?.tokens)) return undefined
  return read?.form !== undefined && read.form in CONTENT_TYPES && typeof read.model === 'string'
    ? (read as AnswerFacts)
    : undefined
}
