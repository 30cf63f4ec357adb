import type { FileTexts } from '../config/read-file.ts'
import type { Environment } from '../config/environment.ts'
import { GatewayError } from '../errors.ts'
import { Service, ServiceEnded } from '../ipc/service.ts'
import { startProcess } from '../ipc/start-process.ts'
import type { ImportPlanner, PlannedAccount, PlannedImport } from '../management/imports.ts'

/** Task for the planning process. */
export interface PlanningTask {
  readonly environment: Environment
  /** Current texts of gateway.yaml and of the prices file. */
  readonly texts: FileTexts
  /** Path of the uploaded file. */
  readonly path: string
  /** Name of the uploaded file in messages. */
  readonly shown: string
  /** Whether the import will be written to the database; false if its plan is only shown. */
  readonly apply: boolean
}

/** The requests of the planning process. */
export interface PlanningRequests {
  plan(task: PlanningTask): Promise<Omit<PlannedImport, 'accounts'>>
  /** Returns the next part of the plan's accounts; an empty one after the last. */
  nextAccounts(): readonly PlannedAccount[]
}

/** Maximum heap size of the planning process in MiB. A file that needs more is refused. */
const MAX_HEAP_MIB = 512

/** Maximum milliseconds for making a plan. */
const MAX_MS = 120_000

/**
 * Plans imports in a separate process, because an uploaded file is untrusted: memory and time of the process
 * are limited, and calls continue if it crashes. One import is planned at a time.
 */
export class PlanningProcesses implements ImportPlanner {
  readonly #environment: Environment
  readonly #texts: () => FileTexts
  #isBusy = false

  /** `texts` returns the current texts of the configuration files. */
  constructor(environment: Environment, texts: () => FileTexts) {
    this.#environment = environment
    this.#texts = texts
  }

  async plan<Result>(
    task: Pick<PlanningTask, 'path' | 'shown' | 'apply'>,
    use: (plan: PlannedImport) => Promise<Result>,
  ): Promise<Result> {
    if (this.#isBusy)
      throw new GatewayError('overloaded', 'another import is being read at the moment; try again', {
        retryAfter: 5,
      })
    this.#isBusy = true
    const service = new Service<PlanningRequests>({
      name: 'import planning',
      start: () => startProcess('./planning-worker', import.meta.url, { maxOldMb: MAX_HEAP_MIB }),
      keepsAlive: true,
      isStateful: true,
    })
    const asRefusal = (error: unknown): never => {
      throw refusalOf(error, task.shown)
    }
    async function* accounts(): AsyncGenerator<readonly PlannedAccount[], void, undefined> {
      for (;;) {
        const part = await service.request('nextAccounts', undefined).catch(asRefusal)
        if (part.length === 0) return
        yield part
      }
    }
    try {
      const whole = { ...task, environment: this.#environment, texts: this.#texts() }
      const plan = await service.request('plan', whole, { timeoutMs: MAX_MS }).catch(asRefusal)
      return await use({ ...plan, accounts })
    } finally {
      await service.close()
      this.#isBusy = false
    }
  }
}

/** The error for the client if no plan can be made. An error of the file is an error of the planning process. */
function refusalOf(error: unknown, shown: string): unknown {
  if (!(error instanceof ServiceEnded))
    return new GatewayError('invalid_request', error instanceof Error ? error.message : String(error))
  switch (error.reason) {
    case 'late':
      return new GatewayError(
        'invalid_request',
        `${shown} could not be read within ${MAX_MS / 1000} s; "sluice import" has more time`,
      )
    case 'ended':
      return new GatewayError(
        'invalid_request',
        `${shown} needs more memory than ${MAX_HEAP_MIB} MiB; "sluice import" may use more`,
      )
    case 'not started':
    case 'closed':
      return error
  }
}
