import { statSync } from 'node:fs'
import process from 'node:process'
import type { Logger } from 'pino'
import { type Config, readConfig } from '../config/config.ts'
import type { Environment } from '../config/environment.ts'
import { ConfigError, formatDiagnostic } from '../config/diagnostics.ts'

/** Result of reading the configuration again. */
export type ReloadResult = 'applied' | 'refused'

/** Watcher of the configuration file and of SIGHUP. */
export interface Reloading {
  close(): Promise<void>
}

/** A file is read when it was unchanged for this long: editors write in several steps. */
const STABLE_MS = 100

/**
 * Watches the configuration file. A file with mistakes is refused whole and logged with file and line; the
 * running configuration stays. `apply` takes over a valid one, or rejects and leaves everything as it was.
 */
export async function reloadOnChange(
  environment: Environment,
  apply: (config: Config) => Promise<void>,
  onResult: (result: ReloadResult) => void,
  log: Logger,
): Promise<Reloading> {
  // One at a time, in the order of the changes. Changes that come meanwhile share the next reading.
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

// Imported late: nobody changes the configuration in the first milliseconds. The library also sees a rename
// over the file.
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

// An empty file means "no channels". At a start that may be intended; in a running gateway an editor has
// opened the file and not written it yet.
function refuseEmpty(file: string | undefined): void {
  if (file === undefined || statSync(file, { throwIfNoEntry: false })?.size !== 0) return
  throw new ConfigError([{ file, path: '', message: 'expected more than an empty file' }])
}
