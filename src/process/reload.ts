import { statSync } from 'node:fs'
import process from 'node:process'
import type { Logger } from 'pino'
import { type Config, readConfig } from '../config/config.ts'
import type { Environment } from '../config/environment.ts'
import { ConfigError, formatDiagnostic } from '../config/diagnostics.ts'

/** How a reading of the configuration ended. */
export type ReloadResult = 'applied' | 'refused'

/** Re-reads the configuration when its file changes, and on SIGHUP. */
export interface Reloading {
  close(): Promise<void>
}

/** A file is read once it has been still for this long: editors write in several steps. */
const STABLE_MS = 100

/**
 * Watches the configuration file. A reading with mistakes is refused whole and logged with file and line; the
 * running configuration stays. `apply` takes over a good one, or rejects and leaves everything as it was.
 */
export async function reloadOnChange(
  environment: Environment,
  apply: (config: Config) => Promise<void>,
  onResult: (result: ReloadResult) => void,
  log: Logger,
): Promise<Reloading> {
  // One at a time, in the order of the changes; those that come meanwhile share the next reading.
  let reading = Promise.resolve()
  let waiting = false
  const reload = (): void => {
    if (waiting) return
    waiting = true
    reading = reading.then(async () => {
      waiting = false
      onResult(await read(environment, apply, log))
    })
  }
  process.on('SIGHUP', reload)
  const watcher =
    environment.configFile === undefined ? undefined : await watch(environment.configFile, reload)
  return {
    async close() {
      process.off('SIGHUP', reload)
      await watcher?.close()
      await reading
    },
  }
}

// Loaded late: nobody changes the configuration in the first milliseconds. The library sees a rename over the
// file too.
async function watch(file: string, changed: () => void): Promise<{ close(): Promise<void> }> {
  const { watch: watchFiles } = await import('chokidar')
  const watcher = watchFiles(file, {
    ignoreInitial: true,
    awaitWriteFinish: { stabilityThreshold: STABLE_MS, pollInterval: 25 },
  })
  watcher.on('add', changed).on('change', changed)
  await new Promise<void>((resolve) => watcher.once('ready', resolve))
  return watcher
}

async function read(
  environment: Environment,
  apply: (config: Config) => Promise<void>,
  log: Logger,
): Promise<ReloadResult> {
  try {
    refuseEmpty(environment.configFile)
    const config = readConfig(environment)
    await apply(config)
    for (const warning of config.warnings) log.warn(formatDiagnostic(warning))
    log.info({ channels: config.settings.channels.length }, 'configuration applied')
    return 'applied'
  } catch (error) {
    const mistakes = error instanceof ConfigError ? error.diagnostics.map(formatDiagnostic) : [String(error)]
    log.error({ mistakes }, 'configuration refused; the running one stays')
    return 'refused'
  }
}

// An empty file says "no channels at all". At a start that may be meant; beneath a running gateway it is a
// file that somebody has opened for writing and not written yet.
function refuseEmpty(file: string | undefined): void {
  if (file === undefined || statSync(file, { throwIfNoEntry: false })?.size !== 0) return
  throw new ConfigError([{ file, path: '', message: 'expected more than an empty file' }])
}
