import type { CandidateName } from '../candidates/candidates.ts'
import { type Effort, FULL, QUICK, QUICK_PAIR } from '../measuring/effort.ts'
import { againstEarlier, againstGoals, againstKept, againstUnwatched, type Verdict } from './limits.ts'
import type { ScenarioResult } from './scenario-result.ts'
import { isStartedAnew, type Scenario, type ScenarioName } from './scenarios.ts'

/** The candidates of a run, their scenarios, and the expected figures. */
export interface Comparison {
  readonly effort: Effort
  /** Whether the candidates can be compared in a scenario. */
  has(scenario: Scenario): boolean
  /** Whether a run that does not name scenarios omits this one. */
  leavesOut(scenario: Scenario): boolean
  candidatesOf(scenario: Scenario): readonly CandidateName[]
  verdicts(name: ScenarioName, findings: readonly ScenarioResult[]): Verdicts
}

interface Verdicts {
  readonly goals: readonly Verdict[]
  readonly kept: readonly Verdict[]
}

/** Compares this gateway with others. */
export function amongOthers(isQuick: boolean): Comparison {
  return {
    effort: isQuick ? QUICK : FULL,
    has: () => true,
    leavesOut: ({ quick }) => isQuick && quick === 'left out',
    candidatesOf: ({ candidates, quick = candidates }) =>
      isQuick && quick !== 'left out' ? quick : candidates,
    verdicts: (name, findings) => ({
      goals: againstGoals(name, findings),
      kept: againstKept(name, findings),
    }),
  }
}

/** Compares this gateway with another checkout of it. */
export function withEarlier(isQuick: boolean): Comparison {
  return {
    effort: isQuick ? QUICK_PAIR : FULL,
    has: () => true,
    leavesOut: ({ quick }) => isQuick && quick === 'left out',
    candidatesOf: () => ['earlier', 'sluice'],
    verdicts: (name, findings) => ({ goals: [], kept: againstEarlier(name, findings) }),
  }
}

/** Compares a gateway whose live log is open in consoles with one without. */
export function withConsoles(isQuick: boolean): Comparison {
  return {
    effort: isQuick ? QUICK_PAIR : FULL,
    has: (scenario) => !isStartedAnew(scenario),
    leavesOut: () => false,
    candidatesOf: () => ['sluice', 'watched'],
    verdicts: (name, findings) => ({ goals: [], kept: againstUnwatched(name, findings) }),
  }
}
