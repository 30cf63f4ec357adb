import type { ModelEndEvent } from '../domain/alert.ts'
import { daysUntil, ENDING_DAYS } from '../domain/model-end.ts'

/** A model that ends, and the model that succeeds it. */
export interface ModelEnding {
  readonly model: string
  /** `2026-10-23` */
  readonly on: string
  readonly successor: string | null
}

/**
 * Finds the models that have passed a threshold before their end, each threshold once in a run of the process.
 * The database knows those of earlier runs and of other nodes. `docs/operations.md: Alerts`.
 */
export class ModelEndings {
  /** The end and the threshold that was last reported, by model. */
  #reported = new Map<string, string>()

  /** The endings to report. Of several thresholds that were passed, only the last one counts. */
  due(models: Iterable<ModelEnding>, nowMs: number): ModelEndEvent[] {
    const due: ModelEndEvent[] = []
    const reported = new Map<string, string>()
    for (const { model, on, successor } of models) {
      const days = daysUntil({ on }, nowMs)
      const threshold = ENDING_DAYS.find((one) => days <= one)
      if (threshold === undefined) continue
      const state = `${on} ${threshold}`
      reported.set(model, state)
      if (this.#reported.get(model) !== state)
        due.push({ threshold, data: { model, shutdown_date: on, days, successor } })
    }
    this.#reported = reported
    return due
  }

  /** Makes every ending due again, because a report could not be stored. */
  forget(): void {
    this.#reported = new Map()
  }
}
