import { setInterval } from 'node:timers'
import type { Environment } from '../config/environment.ts'
import type { FileTexts } from '../config/read-file.ts'
import type { ImportPlanner } from '../management/imports.ts'
import { removeOldUploads } from '../management/uploads.ts'

/** Milliseconds between removals of expired uploads. */
const INTERVAL_MS = 5 * 60_000

/** Plans imports; the module that does so is loaded at first use. */
export class ImportPlanning implements ImportPlanner {
  readonly #environment: Environment
  readonly #texts: () => FileTexts
  #planner: Promise<ImportPlanner> | undefined

  constructor(environment: Environment, texts: () => FileTexts) {
    this.#environment = environment
    this.#texts = texts
  }

  async plan<Result>(...task: Parameters<ImportPlanner['plan']>): Promise<Result> {
    this.#planner ??= import('../transfer/planning.ts').then(
      ({ PlanningProcesses }) => new PlanningProcesses(this.#environment, this.#texts),
    )
    return (await this.#planner).plan(...task) as Promise<Result>
  }
}

/** Removes expired uploads now and at regular intervals. */
export function removeUploadsRegularly(dataDir: string): { stop(): void } {
  const remove = (): void => {
    try {
      removeOldUploads(dataDir)
    } catch {
      // A failed removal is tried again after the interval.
    }
  }
  remove()
  const timer = setInterval(remove, INTERVAL_MS).unref()
  return { stop: () => clearInterval(timer) }
}
