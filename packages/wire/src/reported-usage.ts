import type { ToolUse } from './tool-use.ts'
import { NO_USAGE, promptTokens, type Usage } from './usage.ts'

/** Usage as an upstream reports it. */
export interface ReportedUsage extends Usage {
  /** The upstream reported only the prompt, or no plausible output: `output` is 0 and must be counted. */
  readonly outputIsUnknown?: true
  /** The upstream reported search units but no tokens: those of the prompt must be counted. */
  readonly promptIsUnknown?: true
  /** Set if a part of the output is known only from the total. */
  readonly byTotal?: ByTotal
  /** Uses of the provider's tools other than web searches; absent if it reported none. */
  readonly tools?: readonly ToolUse[]
}

/** Output that a report includes only in its total. */
export interface ByTotal {
  /** The total as reported. */
  readonly total: number
  /** Tokens of output if the total is right, including those that no detail explains. */
  readonly output: number
  /** The report without its total; undefined if nothing is left. */
  readonly otherwise: ReportedUsage | undefined
}

/** Largest plausible output if a request names no maximum. */
const MAX_UNNAMED_OUTPUT = 65_536

/**
 * Returns the report without its total if the total is implausible: the tokens beyond prompt, completion and
 * the details that explain it must fit, together with the completion, into the maximum of output.
 */
export function withCredibleTotal(
  reported: ReportedUsage,
  maximum = MAX_UNNAMED_OUTPUT,
): ReportedUsage | undefined {
  const { byTotal } = reported
  return byTotal && byTotal.output > maximum ? byTotal.otherwise : reported
}

/** Reduces a usage to its prompt. Returns undefined if it has none. */
export function promptOnly(
  usage: Omit<ReportedUsage, 'outputIsUnknown'> | undefined,
): ReportedUsage | undefined {
  if (!usage || promptTokens(usage) === 0) return undefined
  return { ...usage, output: NO_USAGE.output, reasoning: NO_USAGE.reasoning, outputIsUnknown: true }
}

/** Chooses between two reports: the later one, unless only the earlier one contains the output. */
export function laterUsage(
  before: ReportedUsage | undefined,
  later: ReportedUsage | undefined,
): ReportedUsage | undefined {
  return later && (!later.outputIsUnknown || !before || before.outputIsUnknown) ? later : before
}

/** Returns only the counts of a report. */
export function countsOf(reported: ReportedUsage): Usage {
  const { outputIsUnknown: _output, promptIsUnknown: _prompt, byTotal: _, tools: _tools, ...usage } = reported
  return usage
}
