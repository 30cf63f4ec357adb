import { flushCompileCache } from 'node:module'
import process from 'node:process'
import type { Config } from '../config/config.ts'
import { type Gateway, startGateway } from '../main.ts'
import { loadConfig } from './load-config.ts'
import { welcome } from './welcome.ts'

/** `sluice start`: runs until a signal. The exit code is 0 after a clean stop, 1 where it could not start. */
export async function start(options: { readonly config?: string }): Promise<number> {
  const config = loadConfig(options)
  return config ? run(config) : 1
}

/** Runs a gateway with a configuration that was read already. */
export async function run(config: Config): Promise<number> {
  let gateway: Gateway
  try {
    gateway = await startGateway(config)
  } catch (error) {
    process.stderr.write(`sluice cannot start: ${error instanceof Error ? error.message : String(error)}\n`)
    return 1
  }
  // What this start has compiled is kept for the next, however this run may end.
  flushCompileCache()
  process.stdout.write(welcome(gateway))
  const reason = await Promise.race([untilSignal(), gateway.failed])
  if (reason instanceof Error) {
    process.stderr.write(
      `sluice stops: ${reason.message}; calls that were under way are settled at the next start\n`,
    )
    process.exit(1)
  }
  process.stdout.write(`${reason}: no new calls are taken; running ones may end\n`)
  const unresolved = await gateway.close()
  if (unresolved > 0) {
    process.stderr.write(`${unresolved} calls could not be settled; the next start will settle them\n`)
  }
  return unresolved > 0 ? 1 : 0
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const
/** How long after a signal another may be its echo. */
const ECHO_MS = 1_000

/**
 * The first signal. A second one ends at once: what is open then is settled at the next start. One keystroke in a terminal, or
 * one signal to a whole group of processes, comes twice where npm passes it on: such an echo is not a second signal.
 */
function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let firstMs: number | undefined
    // The same listeners from the first to the last: an echo that meets none, if for a moment only, kills the process.
    for (const signal of SIGNALS) {
      process.on(signal, () => {
        if (firstMs === undefined) {
          firstMs = performance.now()
          resolve(signal)
        } else if (performance.now() - firstMs > ECHO_MS) process.exit(1)
      })
    }
  })
}
