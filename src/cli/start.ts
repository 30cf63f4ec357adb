import { flushCompileCache } from 'node:module'
import process from 'node:process'
import type { Config } from '../config/config.ts'
import type { Gateway } from '../main.ts'
import { setCollectorFlags } from '../process/collector-flags.ts'
import { untilStopSignal } from '../process/stop-signals.ts'
import { type IdleThread, startThread } from '../store/sqlite/database-thread.ts'

/** Options of `sluice start`. */
interface StartOptions {
  readonly config?: string
  /** A number, or `auto`. */
  readonly workers?: string
}

/** `sluice start`: runs until a signal. The exit code is 0 after a graceful stop, 1 after a failed start. */
export async function start(options: StartOptions): Promise<number> {
  const isAlone = (options.workers ?? process.env['WORKERS'] ?? '') === ''
  const thread = isAlone ? startThread() : undefined
  const { loadConfig } = await import('./load-config.ts')
  const config = loadConfig(options)
  const code = config ? await run(config, thread) : 1
  // Unread output would keep the process from ending.
  if (process.stdout.writableLength + process.stderr.writableLength > 0) process.exit(code)
  return code
}

/** Runs a gateway with a configuration, and with a thread if one was started already. */
export async function run(config: Config, thread?: IdleThread): Promise<number> {
  const { startGateway } = await import('../main.ts')
  let gateway: Gateway
  try {
    gateway = await startGateway(config, thread)
  } catch (error) {
    process.stderr.write(`sluice cannot start: ${error instanceof Error ? error.message : String(error)}\n`)
    return 1
  }
  // Saves the compile cache for the next start, even if this process is killed.
  flushCompileCache()
  setCollectorFlags()
  const { welcome } = await import('./welcome.ts')
  // Calls are served even where output fails: no reader, or a full disk.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  process.stdout.write(welcome(gateway))
  const reason = await Promise.race([untilStopSignal(), gateway.failed])
  if (reason instanceof Error) {
    process.stderr.write(
      `sluice stops: ${reason.message}; calls that were under way are settled at the next start\n`,
    )
    process.exit(1)
  }
  process.stdout.write(`${reason}: no new calls are accepted; running calls continue to their end\n`)
  const unresolved = await gateway.close()
  if (unresolved > 0) {
    process.stderr.write(`${unresolved} calls could not be settled; the next start will settle them\n`)
  }
  return unresolved > 0 ? 1 : 0
}
