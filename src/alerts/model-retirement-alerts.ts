import type { ModelRetirementEvent } from '../domain/alert.ts'
import { daysUntilRetirement, RETIREMENT_ALERT_DAYS } from '../domain/model-retirement.ts'

/** A model that its provider will shut down, and the model that replaces it. */
export interface AnnouncedRetirement {
  readonly model: string
  /** Day of the shutdown, as `2026-10-23`. */
  readonly on: string
  readonly successor: string | null
}

/**
 * Finds the models whose shutdown is so near that a threshold was passed. Reports each threshold once per run
 * of the process; the database prevents repetitions after a restart and from other nodes.
 * `docs/operations.md: Alerts`.
 */
export class ModelRetirementAlerts {
  /** The shutdown day and the last reported threshold, by model. */
  #reported = new Map<string, string>()

  /** The shutdowns to report. If a model has passed several thresholds, only the nearest one is reported. */
  due(models: Iterable<AnnouncedRetirement>, nowMs: number): ModelRetirementEvent[] {
    const due: ModelRetirementEvent[] = []
    const reported = new Map<string, string>()
    for (const { model, on, successor } of models) {
      const days = daysUntilRetirement({ on }, nowMs)
      const threshold = RETIREMENT_ALERT_DAYS.find((one) => days <= one)
      if (threshold === undefined) continue
      const state = `${on} ${threshold}`
      reported.set(model, state)
      if (this.#reported.get(model) !== state)
        due.push({ threshold, data: { model, shutdown_date: on, days, successor } })
    }
    this.#reported = reported
    return due
  }

  /** Makes every shutdown due again, because a report could not be stored. */
  forget(): void {
    this.#reported = new Map()
  }
}
