import { readFileSync } from 'node:fs'
import type { ScenarioResult } from './scenario-result.ts'
import type { ScenarioName } from './scenarios.ts'

/** The figures of this gateway that limits apply to. */
const FIGURES = {
  'over forwarder': ({ overForwarder }: ScenarioResult) => overForwarder?.median,
  'portkey over this': ({ portkeyOver }: ScenarioResult) => portkeyOver?.median,
  'p50 over the forwarder, ms': ({ p50OverForwarder }: ScenarioResult) =>
    p50OverForwarder === undefined ? undefined : p50OverForwarder / 1000,
  'KB a stream': ({ cost }: ScenarioResult) => cost.median,
  'MB resident': ({ cost }: ScenarioResult) => cost.median,
} as const
type FigureName = keyof typeof FIGURES
type Limits = Partial<Readonly<Record<ScenarioName, Partial<Readonly<Record<FigureName, number>>>>>>

interface LimitsFile {
  /** Target ratios. */
  readonly goals: Limits
  /** Ratios that were reached once, and must not be lost. */
  readonly kept: Limits
  /** Factor by which a kept ratio may be exceeded: machines differ, and other processes disturb. */
  readonly tolerance: number
}

/** A limit, and the measured value. */
export interface Verdict {
  readonly scenario: ScenarioName
  readonly figure: FigureName
  readonly limit: number
  readonly found: number
  readonly isMet: boolean
}

const file = JSON.parse(readFileSync(new URL('./limits.json', import.meta.url), 'utf8')) as LimitsFile

/** Compares the findings with the targets. */
export function againstGoals(scenario: ScenarioName, findings: readonly ScenarioResult[]): Verdict[] {
  return compare(file.goals, 1, scenario, findings)
}

/** Compares the findings with the ratios reached before, including their tolerance. */
export function againstKept(scenario: ScenarioName, findings: readonly ScenarioResult[]): Verdict[] {
  return compare(file.kept, file.tolerance, scenario, findings)
}

function compare(
  limits: Limits,
  tolerance: number,
  scenario: ScenarioName,
  findings: readonly ScenarioResult[],
): Verdict[] {
  const own = findings.find(({ name }) => name === 'sluice')
  if (!own) return []
  return (Object.entries(limits[scenario] ?? {}) as [FigureName, number][]).flatMap(([figure, value]) => {
    const found = FIGURES[figure](own)
    if (found === undefined) return []
    // Higher is better for this figure alone.
    const isLeast = figure === 'portkey over this'
    const limit = isLeast ? value / tolerance : value * tolerance
    return [{ scenario, figure, limit, found, isMet: isLeast ? found >= limit : found <= limit }]
  })
}
