import { parseRecord } from '@sluice/wire/json/record'
import {
  type CacheWriteLifetime,
  numbersOfReport,
  plausibleCount,
  type ReportedUsage,
  withCacheWriteLifetime,
  withCredibleTotal,
} from '@sluice/wire/reported-usage'
import { usageOfResponse } from '@sluice/wire/responses'
import type { StatedService } from '@sluice/wire/service-tier'
import type { ToolUse } from '@sluice/wire/tool-use'
import { NO_USAGE, promptTokens, type Usage } from '@sluice/wire/usage'
import type { SettlementReason } from '../../domain/call-outcome.ts'
import { isCredible } from '../../call/price-usage.ts'
import type { TokenCounter } from '../../call/token-counter.ts'

/** Statuses of a finished response. */
const FINAL: ReadonlySet<unknown> = new Set(['completed', 'incomplete', 'failed', 'cancelled'])

/** The facts about the end of a response on which its charge depends. */
export interface Outcome {
  readonly status: string
  /** The reported usage; null if the upstream reported none. */
  readonly usage: ReportedUsage | null
  /** Tokens of the output counted by the gateway; 0 if output was reported. */
  readonly counted: number
  /** Uses of the provider's own tools, which are charged. */
  readonly tools: readonly ToolUse[]
  /**
   * What the response states about how it was served, such as the service tier; absent if it states nothing.
   */
  readonly served?: StatedService
}

/** Reads the end of a response from its upstream's answer; undefined while it is still being generated. */
export async function outcomeOf(body: Buffer, count: TokenCounter): Promise<Outcome | undefined> {
  const { status, max_output_tokens: maximum } = parseRecord(body.toString()) ?? {}
  if (!FINAL.has(status)) return undefined
  const facts = usageOfResponse(body)
  const usage = facts.usage && withCredibleTotal(facts.usage, plausibleCount(maximum))
  const counted = hasOutput(usage) ? 0 : await count.count(facts.text())
  const tools = (usage ? usage.tools : facts.tools) ?? []
  return {
    status: String(status),
    usage: usage ?? null,
    counted,
    tools,
    ...(usage?.served && { served: usage.served }),
  }
}

/** Whether a response is charged by its usage alone. */
export function hasOutput(usage: ReportedUsage | null | undefined): usage is ReportedUsage {
  return usage ? isCredible(usage, { hasText: () => true }) : false
}

/** Whether a response was generated completely or up to a limit. */
export function isFinished({ status }: Outcome): boolean {
  return status === 'completed' || status === 'incomplete'
}

/**
 * Usage by which a response is charged: the reported one if it is credible, as for any call. Otherwise the prompt, counted
 * unless it was reported, and the larger of the output shown and the output streamed. A failed response without
 * usage is free if nothing of it was streamed. `lifetime` is that of cached tokens for which none was reported.
 */
export function chargedUsage(
  outcome: Outcome,
  countedPrompt: number,
  streamedTokens: number,
  lifetime: CacheWriteLifetime = '5m',
): { readonly usage: Usage; readonly reason: SettlementReason } {
  const { status, usage: reported, counted } = outcome
  const usage = reported?.lifetimeIsUnknown ? withCacheWriteLifetime(reported, lifetime) : reported
  const unfinished = status === 'cancelled' ? 'client_gone' : 'cut'
  const output = Math.max(counted, streamedTokens)
  if (usage && isCredible(usage, { hasText: () => output > 0 }))
    return { usage: numbersOfReport(usage), reason: isFinished(outcome) ? 'complete' : unfinished }
  const isPromptReported = usage && (usage.outputIsUnknown || !isFinished(outcome)) && promptTokens(usage) > 0
  if (status === 'failed' && streamedTokens === 0 && !isPromptReported)
    return { usage: NO_USAGE, reason: 'failed' }
  const prompt = isPromptReported
    ? numbersOfReport(usage)
    : { ...NO_USAGE, input: countedPrompt, webSearches: usage?.webSearches ?? 0 }
  return { usage: { ...prompt, output }, reason: isFinished(outcome) ? 'estimated' : unfinished }
}
