import type { ToolUse } from '../../domain/tool-use.ts'
import { readInclusiveUsage } from '../inclusive-usage.ts'
import type { ReportedUsage } from '../reported-usage.ts'
import { ToolTally, usesBeside, usesOf } from '../tool-tally.ts'
import { noteItems } from './tool-items.ts'
import { reportedUses } from './tool-usage.ts'

type Response = Readonly<Record<string, unknown>>

/**
 * Reads the usage of a response: cached tokens, read and written, are part of its input, reasoning is part of
 * its output. Tools are those that it reports, otherwise those of its items; `tally`: the items of its
 * stream, as the last event may leave them out. Undefined without usage.
 */
export function usageOf(response: Response, tally?: ToolTally): ReportedUsage | undefined {
  const usage = readInclusiveUsage(response['usage'])
  if (!usage) return undefined
  const uses = toolsOf(response, tally)
  if (uses.length === 0 && !tally?.uses.length) return usage
  return {
    ...usage,
    webSearches: Math.max(usesOf(uses, 'web_search'), usage.webSearches),
    tools: usesBeside(uses, 'web_search'),
  }
}

/** The uses of the provider's tools in a response. */
export function toolsOf(response: Response, tally = new ToolTally()): readonly ToolUse[] {
  noteItems(tally, response['output'])
  return reportedUses(response, tally.uses)
}
