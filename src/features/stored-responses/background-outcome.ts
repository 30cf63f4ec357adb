import { parseRecord } from '@sluice/wire/json/record'
import { numbersOfReport, plausibleCount, withCredibleTotal } from '@sluice/wire/reported-usage'
import { usageOfResponse } from '@sluice/wire/responses'
import type { StatedService } from '@sluice/wire/service-tier'
import type { ToolUse } from '@sluice/wire/tool-use'
import { NO_USAGE, type Usage } from '@sluice/wire/usage'
import type { SettlementReason } from '../../domain/call-outcome.ts'
import type { TokenCounter } from '../../call/token-counter.ts'

/** Statuses of a finished response. */
const FINAL: ReadonlySet<unknown> = new Set(['completed', 'incomplete', 'failed', 'cancelled'])

/** The facts about the end of a response on which its charge depends. */
export interface Outcome {
  readonly status: string
  /** The reported usage; null if the upstream reported none. */
  readonly usage: Usage | null
  /** Tokens of the output counted by the gateway; 0 if usage was reported. */
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
  const counted = usage ? 0 : await count.count(facts.text())
  const tools = (usage ? usage.tools : facts.tools) ?? []
  return {
    status: String(status),
    usage: usage ? numbersOfReport(usage) : null,
    counted,
    tools,
    ...(usage?.served && { served: usage.served }),
  }
}

/** Whether a response was generated completely or up to a limit. */
export function isFinished({ status }: Outcome): boolean {
  return status === 'completed' || status === 'incomplete'
}

/**
 * Usage by which a response is charged: the reported one. If none was reported, the counted prompt, and the
 * larger of the output shown and the output streamed. A failed response is free if nothing of it was
 * streamed.
 */
export function chargedUsage(
  outcome: Outcome,
  promptTokens: number,
  streamedTokens: number,
): { readonly usage: Usage; readonly reason: SettlementReason } {
  const { status, usage, counted } = outcome
  const unfinished = status === 'cancelled' ? 'client_gone' : 'cut'
  if (usage) return { usage, reason: isFinished(outcome) ? 'complete' : unfinished }
  if (status === 'failed' && streamedTokens === 0) return { usage: NO_USAGE, reason: 'failed' }
  const output = Math.max(counted, streamedTokens)
  const estimated = { ...NO_USAGE, input: promptTokens, output }
  return { usage: estimated, reason: isFinished(outcome) ? 'estimated' : unfinished }
}
