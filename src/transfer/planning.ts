import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FileTexts } from '../config/read-file.ts'
import type { Environment } from '../config/environment.ts'
import { GatewayError } from '../errors.ts'
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

/** Message to the planning process that requests the next accounts. */
export const NEXT_ACCOUNTS = 'next'

/**
 * Message from the planning process: the plan, or a part of the plan's accounts (the last part is empty), or
 * a refusal.
 */
export type PlanningMessage =
  | ({ readonly kind: 'plan' } & Omit<PlannedImport, 'accounts'>)
  | { readonly kind: 'accounts'; readonly accounts: readonly PlannedAccount[] }
  | { readonly kind: 'refused'; readonly message: string }

/** Maximum heap size of the planning process in MiB. A file that needs more is refused. */
const MAX_HEAP_MIB = 512

/** Maximum milliseconds for making a plan. */
const MAX_MS = 120_000

// The worker's file name ends in .ts in the source and in .js in the build.
const PROGRAM = new URL(`./planning-worker${extname(fileURLToPath(import.meta.url))}`, import.meta.url)

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
    const planning = new PlanningProcess(task.shown)
    try {
      const plan = await planning.start({ ...task, environment: this.#environment, texts: this.#texts() })
      return await use({ ...plan, accounts: () => planning.accounts() })
    } finally {
      planning.end()
      this.#isBusy = false
    }
  }
}

class PlanningProcess {
  readonly #child: ChildProcess
  readonly #shown: string
  #isLate = false

  constructor(shown: string) {
    this.#shown = shown
    this.#child = fork(PROGRAM, {
      execArgv: [`--max-old-space-size=${MAX_HEAP_MIB}`],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    // An error needs no handling of its own, because the `exit` event follows.
    this.#child.on('error', () => {})
  }

  /** Sends the task. Rejects with an error for the client if no plan can be made. */
  async start(task: PlanningTask): Promise<Omit<PlannedImport, 'accounts'>> {
    const timer = setTimeout(() => {
      this.#isLate = true
      this.end()
    }, MAX_MS)
    try {
      const answer = await this.#ask(task)
      if (answer.kind === 'plan') return answer
      throw refused(answer.kind === 'refused' ? answer.message : 'the plan is incomplete')
    } finally {
      clearTimeout(timer)
    }
  }

  /** Yields the accounts of the plan in parts. Each part is requested when it is needed. */
  async *accounts(): AsyncGenerator<readonly PlannedAccount[], void, undefined> {
    for (;;) {
      const answer = await this.#ask(NEXT_ACCOUNTS)
      if (answer.kind !== 'accounts')
        throw new Error('the process that plans the import sent an unexpected message')
      if (answer.accounts.length === 0) return
      yield answer.accounts
    }
  }

  end(): void {
    this.#child.kill('SIGKILL')
  }

  async #ask(message: PlanningTask | typeof NEXT_ACCOUNTS): Promise<PlanningMessage> {
    const over = new AbortController()
    const { signal } = over
    const answer = once(this.#child, 'message', { signal })
    const end = once(this.#child, 'exit', { signal })
    // Only one of the two promises is used; the rejection of the other one when it is aborted is ignored.
    answer.catch(() => {})
    end.catch(() => {})
    try {
      if (this.#child.connected) this.#child.send(message)
      const ended = this.#child.exitCode !== null || this.#child.signalCode !== null
      const first = ended ? undefined : await Promise.race([answer, end.then(() => undefined)])
      if (first) return first[0] as PlanningMessage
      throw refused(
        this.#isLate
          ? `${this.#shown} could not be read within ${MAX_MS / 1000} s; "sluice import" has more time`
          : `${this.#shown} needs more memory than ${MAX_HEAP_MIB} MiB; "sluice import" may use more`,
      )
    } finally {
      over.abort()
    }
  }
}

function refused(message: string): GatewayError {
  return new GatewayError('invalid_request', message)
}
