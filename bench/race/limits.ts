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
  'over steady': ({ overSteady }: ScenarioResult) => overSteady?.median,
} as const
type FigureName = keyof typeof FIGURES
/**
 * Limits by scenario; if a scenario has several rows of this gateway, the row's conditions follow after a
 * comma.
 */
type Limits = Readonly<Record<string, Partial<Readonly<Record<FigureName, number>>>>>

interface LimitsFile {
  /** Target ratios. */
  readonly goals: Limits
  /** Ratios that were reached before and must not get worse. */
  readonly kept: Limits
  /** Factor by which a kept ratio may be exceeded, because machines differ and other processes interfere. */
  readonly tolerance: number
  /**
   * Factor by which a row may cost more than that of another checkout; it is exceeded if three quarters of
   * the rounds exceed it.
   */
  readonly change: number
}

/** A limit, and the measured value. */
export interface Verdict {
  /** Name of the scenario, followed by the conditions if it has several rows. */
  readonly scenario: string
  readonly figure: FigureName | 'over its pair'
  readonly limit: number
  readonly found: number
  readonly isMet: boolean
}

/** Prefix of the names of this gateway's rows. */
const OWN = 'sluice'

const file = JSON.parse(readFileSync(new URL('../limits.json', import.meta.url), 'utf8')) as LimitsFile

/** Compares the findings with the targets. */
export function againstGoals(scenario: ScenarioName, findings: readonly ScenarioResult[]): Verdict[] {
  return compare(file.goals, 1, scenario, findings)
}

/** Compares the findings with the ratios reached before, including their tolerance. */
export function againstKept(scenario: ScenarioName, findings: readonly ScenarioResult[]): Verdict[] {
  return compare(file.kept, file.tolerance, scenario, findings)
}

/** Compares the cost of a gateway with open consoles to the cost without, including the tolerance. */
export function againstUnwatched(scenario: ScenarioName, findings: readonly ScenarioResult[]): Verdict[] {
  const limit = file.tolerance
  return overPair(scenario, findings, limit, 'median')
}

/**
 * Compares this gateway with another checkout. A row is worse if three quarters of its rounds are, because
 * single rounds differ by more than the limit.
 */
export function againstEarlier(scenario: ScenarioName, findings: readonly ScenarioResult[]): Verdict[] {
  return overPair(scenario, findings, file.change, 'p25')
}

function overPair(
  scenario: ScenarioName,
  findings: readonly ScenarioResult[],
  limit: number,
  quantile: 'median' | 'p25',
): Verdict[] {
  return findings.flatMap(({ overPair: ratios }) => {
    if (!ratios) return []
    const found = ratios[quantile]
    return [{ scenario, figure: 'over its pair', limit, found, isMet: found <= limit }]
  })
}

function compare(
  limits: Limits,
  tolerance: number,
  scenario: ScenarioName,
  findings: readonly ScenarioResult[],
): Verdict[] {
  return findings
    .filter(({ name }) => name.startsWith(OWN))
    .flatMap((own) => {
      const row = `${scenario}${own.name.slice(OWN.length)}`
      return (Object.entries(limits[row] ?? {}) as [FigureName, number][]).flatMap(([figure, value]) => {
        const found = FIGURES[figure](own)
        if (found === undefined) return []
        // This is the only figure for which higher is better.
        const isLeast = figure === 'portkey over this'
        const limit = isLeast ? value / tolerance : value * tolerance
        return [{ scenario: row, figure, limit, found, isMet: isLeast ? found >= limit : found <= limit }]
      })
    })
}
