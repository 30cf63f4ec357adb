import type { Logger } from 'pino'
import type { StartWatch } from '../ipc/service.ts'

/**
 * Knows which helper threads could not be started, for example because the system allows no more. Until their
 * service has started them, the results that they would compute are estimated.
 */
export class HelperThreads implements StartWatch {
  readonly #log: Pick<Logger, 'error' | 'info'>
  readonly #missing = new Set<string>()

  constructor(log: Pick<Logger, 'error' | 'info'>) {
    this.#log = log
  }

  /** Whether every needed thread could be started. */
  get areComplete(): boolean {
    return this.#missing.size === 0
  }

  failed(name: string, reason: unknown): void {
    this.#missing.add(name)
    this.#log.error({ thread: name, err: reason }, 'a helper thread cannot be started: it is tried again')
  }

  started(name: string): void {
    if (this.#missing.delete(name)) this.#log.info({ thread: name }, 'a helper thread could be started again')
  }
}
