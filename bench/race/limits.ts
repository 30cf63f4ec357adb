import { readFileSync, writeFileSync } from 'node:fs'
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
  /** Factor by which a call may cost more while consoles show it. */
  readonly watched: number
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

const FILE = new URL('../limits.json', import.meta.url)
const file = JSON.parse(readFileSync(FILE, 'utf8')) as LimitsFile

/** Compares the findings with the targets. */
export function againstGoals(scenario: ScenarioName, findings: readonly ScenarioResult[]): Verdict[] {
  return compare(file.goals, 1, scenario, findings)
}

/** Compares the findings with the ratios reached before, including their tolerance. */
export function againstKept(scenario: ScenarioName, findings: readonly ScenarioResult[]): Verdict[] {
  return compare(file.kept, file.tolerance, scenario, findings)
}

/**
 * Writes the found figures into `limits.json` as those that are kept. Scenarios that were not measured keep theirs. A
 * row that the file does not have yet is kept by its ratio to the forwarder.
 */
export function keep(results: readonly Measured[]): void {
  const kept: Record<string, Limits[string]> = { ...file.kept }
  for (const { scenario, findings } of results)
    for (const own of findings.filter(({ name }) => name.startsWith(OWN))) {
      const row = rowOf(scenario, own)
      const figures = Object.keys(kept[row] ?? { 'over forwarder': 0 }) as FigureName[]
      const found = figures.flatMap((figure) => {
        const value = FIGURES[figure](own)
        return value === undefined ? [] : [[figure, Number(value.toFixed(2))] as const]
      })
      if (found.length > 0) kept[row] = { ...kept[row], ...Object.fromEntries(found) }
    }
  writeFileSync(FILE, `${JSON.stringify({ ...file, kept }, null, 2)}\n`)
}

/** The findings of a scenario. */
interface Measured {
  readonly scenario: ScenarioName
  readonly findings: readonly ScenarioResult[]
}

function rowOf(scenario: ScenarioName, { name }: ScenarioResult): string {
  return `${scenario}${name.slice(OWN.length)}`
}

/** Compares the cost of a gateway with open consoles to the cost without. */
export function againstUnwatched(scenario: ScenarioName, findings: readonly ScenarioResult[]): Verdict[] {
  return overPair(scenario, findings, file.watched, 'median')
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
      const row = rowOf(scenario, own)
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
