import { flushCompileCache } from 'node:module'
import process from 'node:process'
import type { Config } from '../config/config.ts'
import type { Gateway } from '../main.ts'
import { type IdleThread, startThread } from '../store/sqlite/thread.ts'

/** `sluice start`: runs until a signal. The exit code is 0 after a clean stop, 1 where it could not start. */
export async function start(options: { readonly config?: string }): Promise<number> {
  const thread = startThread()
  const { loadConfig } = await import('./load-config.ts')
  const config = loadConfig(options)
  const code = config ? await run(config, thread) : 1
  // Words that nobody reads would keep the process from ending.
  if (process.stdout.writableLength + process.stderr.writableLength > 0) process.exit(code)
  return code
}

/** Runs a gateway with a configuration that was read already, and a thread if one is started already. */
export async function run(config: Config, thread?: IdleThread): Promise<number> {
  const { startGateway } = await import('../main.ts')
  let gateway: Gateway
  try {
    gateway = await startGateway(config, thread)
  } catch (error) {
    process.stderr.write(`sluice cannot start: ${error instanceof Error ? error.message : String(error)}\n`)
    return 1
  }
  // What this start has compiled is kept for the next, however this run may end.
  flushCompileCache()
  const { welcome } = await import('./welcome.ts')
  // Where nobody reads what is said, or a disk has no room for it, calls are served all the same.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
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
 * The first signal. A second one ends at once: what is open then is settled at the next start. One keystroke
 * in a terminal, or one signal to a whole group of processes, comes twice where npm passes it on: such an
 * echo is not a second signal.
 */
function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let firstMs: number | undefined
    // The same listeners from the first to the last: an echo that meets none, if for a moment only, kills the
    // process.
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
