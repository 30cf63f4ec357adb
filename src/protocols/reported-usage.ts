import type { ToolUse } from '../domain/tool-use.ts'
import { NO_USAGE, promptTokens, type Usage } from '../domain/usage.ts'

/** Usage as an upstream reports it. */
export interface ReportedUsage extends Usage {
  /** The upstream reported the prompt alone, or no credible output: `output` is 0 and has to be counted. */
  readonly outputIsUnknown?: true
  /** The upstream reported search units and no tokens: those of the prompt have to be counted. */
  readonly promptIsUnknown?: true
  /** Set where the total alone tells a part of the output. */
  readonly byTotal?: ByTotal
  /** Uses of the provider's tools other than searches of the web; absent where it told of none. */
  readonly tools?: readonly ToolUse[]
}

/** Output that a report states only by its total. */
export interface ByTotal {
  /** The total as reported. */
  readonly total: number
  /** Tokens of completion that it allows, those that no detail explains among them. */
  readonly output: number
  /** The report as it is without its total; undefined where nothing is left. */
  readonly otherwise: ReportedUsage | undefined
}

/** Largest credible output where a request names no maximum. */
const MAX_UNNAMED_OUTPUT = 65_536

/**
 * Returns the report without its total if that cannot be true: what it has beyond prompt, completion and the
 * details that explain it must fit, together with the completion, into the maximum of output.
 */
export function withCredibleTotal(
  reported: ReportedUsage,
  maximum = MAX_UNNAMED_OUTPUT,
): ReportedUsage | undefined {
  const { byTotal } = reported
  return byTotal && byTotal.output > maximum ? byTotal.otherwise : reported
}

/** Reduces a usage to its prompt; undefined if it has none. */
export function promptOnly(
  usage: Omit<ReportedUsage, 'outputIsUnknown'> | undefined,
): ReportedUsage | undefined {
  if (!usage || promptTokens(usage) === 0) return undefined
  return { ...usage, output: NO_USAGE.output, reasoning: NO_USAGE.reasoning, outputIsUnknown: true }
}

/** Chooses between two reports: the later, unless only the earlier states the output. */
export function laterUsage(
  before: ReportedUsage | undefined,
  later: ReportedUsage | undefined,
): ReportedUsage | undefined {
  return later && (!later.outputIsUnknown || !before || before.outputIsUnknown) ? later : before
}

/** Returns the counts of a report. */
export function countsOf(reported: ReportedUsage): Usage {
  const { outputIsUnknown: _output, promptIsUnknown: _prompt, byTotal: _, tools: _tools, ...usage } = reported
  return usage
}
