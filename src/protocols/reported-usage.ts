import { NO_USAGE, promptTokens, type Usage } from '../domain/usage.ts'

/** Usage as an upstream reports it. */
export interface ReportedUsage extends Usage {
  /** Only the prompt was told, or can be true: `output` is 0 and has to be counted. */
  readonly outputIsUnknown?: true
}

/** The prompt's part of a usage; undefined where it tells none. */
export function promptOnly(usage: Usage | undefined): ReportedUsage | undefined {
  if (!usage || promptTokens(usage) === 0) return undefined
  return { ...usage, output: NO_USAGE.output, reasoning: NO_USAGE.reasoning, outputIsUnknown: true }
}

/** The report that counts of two: the later, unless it alone tells no output. */
export function laterUsage(
  before: ReportedUsage | undefined,
  later: ReportedUsage | undefined,
): ReportedUsage | undefined {
  return later && (!later.outputIsUnknown || !before || before.outputIsUnknown) ? later : before
}

/** The counts of a report. */
export function countsOf(reported: ReportedUsage): Usage {
  const { outputIsUnknown: _, ...usage } = reported
  return usage
}
