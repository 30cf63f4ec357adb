import type { SettlementReason } from '../../domain/settlement-reason.ts'
import type { ToolUse } from '../../domain/tool-use.ts'
import { NO_USAGE, type Usage } from '../../domain/usage.ts'
import { parseRecord } from '../../protocols/json/record.ts'
import { countsOf, withCredibleTotal } from '../../protocols/reported-usage.ts'
import { usageOfResponse } from '../../protocols/responses/index.ts'
import { toCount } from '../../protocols/token-count.ts'
import type { LocalCount } from '../local-count.ts'

/** Statuses of a response that is over. */
const FINAL: ReadonlySet<unknown> = new Set(['completed', 'incomplete', 'failed', 'cancelled'])

/** End of a response, as far as its charge depends on it. */
export interface Outcome {
  readonly status: string
  /** Null where the upstream reported none. */
  readonly usage: Usage | null
  /** Tokens of the output by a count of the gateway's own; 0 where usage was reported. */
  readonly counted: number
  /** Uses of the provider's tools. */
  readonly tools: readonly ToolUse[]
}

/** Reads the end of a response as its upstream tells it; undefined while it is being made. */
export async function outcomeOf(body: Buffer, count: LocalCount): Promise<Outcome | undefined> {
  const { status, max_output_tokens: maximum } = parseRecord(body.toString()) ?? {}
  if (!FINAL.has(status)) return undefined
  const facts = usageOfResponse(body)
  const usage = facts.usage && withCredibleTotal(facts.usage, toCount(maximum))
  const counted = usage ? 0 : await count.count(facts.text())
  const tools = (usage ? usage.tools : facts.tools) ?? []
  return { status: String(status), usage: usage ? countsOf(usage) : null, counted, tools }
}

/** Whether a response ended as its protocol says. */
export function isFinished({ status }: Outcome): boolean {
  return status === 'completed' || status === 'incomplete'
}

/**
 * Usage that a response is charged by: as reported; else its counted prompt, and the larger of the output
 * that it shows and of what was streamed. A failed one of which nothing was streamed costs nothing.
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
