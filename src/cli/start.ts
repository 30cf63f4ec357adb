import { existsSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../config/config.ts'
import type { Environment } from '../config/environment.ts'
import { sqlitePath } from '../domain/database-url.ts'
import type { Gateway, OpenedResources } from '../gateway/main.ts'
import { setCollectorFlags, setThreadFlags } from '../gateway/v8-flags.ts'
import { waitForStopSignal } from '../gateway/stop-signals.ts'
import { startThread } from '../store/sqlite/database-thread.ts'
import { loadEnvironment } from './load-environment.ts'
import { plainText } from './plain-text.ts'

/** Maximum time that the gateway may take to finish starting after a signal to stop. */
const START_GRACE_MS = 3_000

/** Maximum time in milliseconds for which a failed start closes what it has opened. */
const CLOSE_MS = 1_000

/** What to do instead of `--workers` and `WORKERS`. */
const NO_WORKERS =
  'there are no workers (--workers, WORKERS): start several nodes on PostgreSQL, which share the port with options.reuse_port (docs/scaling.md)'

/** Options of `sluice start`. */
interface StartOptions {
  readonly config?: string
  /** No longer supported: `NO_WORKERS`. */
  readonly workers?: string
}

/**
 * `sluice start`: runs until a signal. The exit code is 0 after a graceful stop, 1 after a failed start. `opened` has resources
 * that are already open.
 */
export async function start(options: StartOptions, opened: OpenedResources = {}): Promise<number> {
  if (options.workers !== undefined || process.env['WORKERS']?.trim())
    return endAfterFailure(printStartFailure(new Error(NO_WORKERS)))
  const environment = loadEnvironment(options)
  const code = environment ? await startIn(environment, opened) : 1
  return endAfterFailure(code)
}

/**
 * Ends the process after a failure, so that nothing that was started keeps it alive; or if output is pending, which has
 * no reader then. Else returns the exit code.
 */
export function endAfterFailure(code: number): number {
  if (code !== 0 || process.stdout.writableLength + process.stderr.writableLength > 0) process.exit(code)
  return code
}

async function startIn(environment: Environment, opened: OpenedResources): Promise<number> {
  // Without a listener SIGHUP ends the process. What it asks for, reading the configuration, is still to come here.
  process.on('SIGHUP', () => {})
  const path = sqlitePath(environment.databaseUrl)
  setThreadFlags()
  // The database thread loads its modules at the same time as this thread loads the configuration.
  const expectsMigrations = path !== undefined && !existsSync(path)
  const thread = startThread({ expectsMigrations })
  const { loadConfig } = await import('./load-config.ts')
  const config = loadConfig(environment)
  return config ? runGateway(config, { ...opened, thread }) : 1
}

/** Prints why the gateway cannot start; returns the exit code. */
export function printStartFailure(error: unknown): number {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`sluice cannot start: ${plainText(message)}\n`)
  return 1
}

/** Runs a gateway with a configuration, and with the services that were already opened for it. */
export async function runGateway(config: Config, opened: OpenedResources = {}): Promise<number> {
  setThreadFlags()
  const stopSignal = waitForStopSignal()
  let gateway: Gateway
  let isReloadDue = false
  // The gateway itself listens only from the end of its start until its stop begins. At other times SIGHUP must not
  // end the process either.
  process.on('SIGHUP', () => (isReloadDue = !gateway))
  const { startGateway } = await import('../gateway/main.ts')
  // A signal to stop may arrive while the gateway is still starting. The stop waits until the start has
  // ended, but not longer than `START_GRACE_MS`.
  void stopSignal.then(() => setTimeout(() => gateway ?? process.exit(1), START_GRACE_MS).unref())
  const failure = Promise.withResolvers<never>()
  const starting = startGateway(config, { ...opened, onFailure: failure.reject })
  try {
    gateway = await Promise.race([starting, failure.promise])
  } catch (error) {
    const code = printStartFailure(error)
    // What was opened is being closed, which may take as long as a server that does not answer.
    await Promise.race([starting.catch(() => {}), delay(CLOSE_MS)])
    return code
  }
  if (isReloadDue) process.emit('SIGHUP')
  // Saves the compile cache for the next start, even if this process is killed later.
  flushCompileCache()
  setCollectorFlags()
  const { welcome } = await import('./welcome.ts')
  // An output error must not stop the gateway: the reader may be gone, or the disk full.
  for (const stream of [process.stdout, process.stderr])
    stream.removeAllListeners('error').on('error', () => {})
  process.stdout.write(welcome(gateway, config))
  const reason = await Promise.race([stopSignal, gateway.failed])
  if (reason instanceof Error) {
    process.stderr.write(
      `sluice stops: ${plainText(reason.message)}; calls that were under way are settled at the next start\n`,
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
