import { spawnSync } from 'node:child_process'
import type { Reporter, TestCase, TestModule } from 'vitest/node'

/**
 * Longer than any test file takes without a test or a hook that ends, because each of those has a timeout.
 */
const MAX_SILENCE_MS = 12 * 60_000

/**
 * Prints each failure at once, and ends a run in which nothing finishes any more, with the names of the files
 * and processes that were running. The timeouts of tests do not apply to a file that is being imported, or to a
 * worker whose thread is blocked.
 */
export default class WatchedRun implements Reporter {
  readonly #running = new Set<TestModule>()
  #timer: NodeJS.Timeout | undefined

  onTestRunStart(): void {
    this.#restart()
  }

  onTestModuleQueued(module: TestModule): void {
    this.#running.add(module)
    this.#restart()
  }

  onTestModuleEnd(module: TestModule): void {
    this.#running.delete(module)
    this.#restart()
  }

  onTestCaseResult(test: TestCase): void {
    this.#restart()
    // The summary of all failures is never written by a run that is ended.
    for (const { message } of test.result().errors ?? []) console.error(`${test.fullName}: ${message}`)
  }

  onTestRunEnd(): void {
    clearTimeout(this.#timer)
  }

  #restart(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#end(), MAX_SILENCE_MS)
    this.#timer.unref()
  }

  #end(): void {
    const files = [...this.#running].map(({ moduleId }) => moduleId)
    const processes = spawnSync('ps', ['-eo', 'pid,ppid,stat,etimes,wchan:24,args', '--forest'], {
      encoding: 'utf8',
      timeout: 10_000,
    })
    console.error(`no test has ended for ${MAX_SILENCE_MS / 60_000} minutes; running: ${files.join(', ')}`)
    console.error(processes.stdout)
    process.exit(1)
  }
}
