import process from 'node:process'
import { readEnvironment } from '../config/environment.ts'

/** `sluice worker`, run by `sluice start --workers`: one of several processes that take calls. */
export async function worker(): Promise<never> {
  const { runWorker } = await import('../gateway/workers/worker.ts')
  try {
    process.exit(await runWorker(readEnvironment(process.env)))
  } catch (error) {
    process.stderr.write(`a worker cannot start: ${error instanceof Error ? error.message : String(error)}\n`)
    process.exit(1)
  }
}
