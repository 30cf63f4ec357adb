import { readInclusiveUsage } from '../inclusive-usage.ts'
import { asRecord } from '../json/record.ts'
import type { ReportedUsage } from '../reported-usage.ts'
import type { Counts } from '../token-count.ts'

/**
 * Finds the usage of a chunk or a reply: at the top level, under another name there, in a choice, or in an
 * error. The first one that contains the output counts, or else the first one.
 */
export function usageOf(reply: Counts): ReportedUsage | undefined {
  const choices = reply['choices']
  let found: ReportedUsage | undefined
  for (const holder of [
    reply,
    asRecord(reply['x_groq']),
    Array.isArray(choices) ? asRecord(choices[0]) : undefined,
    asRecord(reply['error']),
  ]) {
    const usage = readInclusiveUsage(holder?.['usage'])
    if (usage && !usage.outputIsUnknown) return usage
    found ??= usage
  }
  return found
}
