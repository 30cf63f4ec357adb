import { actionOf, type Guard, type GuardVerdict, GUARD_VERDICTS } from '../../domain/guard.ts'

/** A guard that applies to a call, and what it has decided so far. */
export class ActiveGuard {
  readonly guard: Guard
  verdict: GuardVerdict = 'allowed'
  matches = 0
  /** Whether the guard has checked any text. */
  hasRun = false
  /** Time that the guard's checks took, in milliseconds. */
  tookMs = 0

  constructor(guard: Guard) {
    this.guard = guard
  }

  /** Records a verdict with its number of matches; a more severe verdict stays. */
  note(verdict: GuardVerdict, matches: number): void {
    this.hasRun = true
    this.matches += matches
    if (GUARD_VERDICTS.indexOf(verdict) > GUARD_VERDICTS.indexOf(this.verdict)) this.verdict = verdict
  }
}

/** Thrown when a guard blocks a request or an answer. */
export class GuardBlock extends Error {
  readonly active: ActiveGuard

  constructor(active: ActiveGuard) {
    super('blocked by a guard')
    this.active = active
  }
}

/** Whether a text that the guard cannot check may be sent. */
export function passesUncheckedText({ guard }: ActiveGuard): boolean {
  return actionOf(guard, false) === 'flag' || guard.on_failure === 'pass'
}
