import process from 'node:process'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { ConfigError, formatDiagnostic } from '../config/diagnostics.ts'
import { readConfigInThread } from '../config/reading-thread.ts'

/** Result of reading the configuration again. */
export type ReloadResult = 'applied' | 'refused'

/** Watcher of the configuration file and of SIGHUP. */
export interface Reloading {
  close(): Promise<void>
}

/** Time for which a file must be unchanged before it is read, because editors write in several steps. */
const STABLE_MS = 100
const WARNINGS_AT_ONCE = 200

/**
 * Watches the configuration file. A file with mistakes is refused whole and logged with file and line; the
 * running configuration stays. `apply` takes over a valid one, or rejects and leaves everything as it was.
 */
export async function reloadOnChange(
  running: Pick<Config, 'environment' | 'builtIn'>,
  apply: (config: Config) => Promise<void>,
  onResult: (result: ReloadResult) => void,
  log: Logger,
): Promise<Reloading> {
  // One at a time, in the order of the changes. Changes that arrive during a read share the next one.
  let reading = Promise.resolve()
  let waiting = false
  const reload = (): void => {
    if (waiting) return
    waiting = true
    reading = reading.then(async () => {
      waiting = false
      onResult(await read(running, apply, log))
    })
  }
  process.on('SIGHUP', reload)
  const { configFile } = running.environment
  const watcher = configFile === undefined ? undefined : await watch(configFile, reload)
  return {
    async close() {
      process.off('SIGHUP', reload)
      await watcher?.close()
      await reading
    },
  }
}

// Imported on demand, because the file does not change in the first milliseconds. The library also detects a
// rename over the file.
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
  { environment, builtIn }: Pick<Config, 'environment' | 'builtIn'>,
  apply: (config: Config) => Promise<void>,
  log: Logger,
): Promise<ReloadResult> {
  try {
    const config = await readConfigInThread(environment, builtIn)
    // Checks the text that was read, because the file may have been emptied since.
    refuseEmpty(config)
    await apply(config)
    await warn(config.warnings, log)
    log.info({ channels: config.settings.channels.length }, 'configuration applied')
    return 'applied'
  } catch (error) {
    const mistakes = error instanceof ConfigError ? error.diagnostics.map(formatDiagnostic) : [String(error)]
    log.error({ mistakes }, 'configuration refused; the running one stays')
    return 'refused'
  }
}

// Pauses now and then, because a large file may have thousands of warnings.
async function warn(warnings: Config['warnings'], log: Logger): Promise<void> {
  for (const [index, warning] of warnings.entries()) {
    log.warn(formatDiagnostic(warning))
    if (index % WARNINGS_AT_ONCE === WARNINGS_AT_ONCE - 1) await nextTurn()
  }
}

// An empty file means "no channels". At a start that may be intended; while the gateway runs, an editor has
// probably truncated the file and not written it yet.
function refuseEmpty({ environment: { configFile: file }, fileText }: Config): void {
  if (file === undefined || fileText !== '') return
  throw new ConfigError([{ file, path: '', message: 'expected more than an empty file' }])
}
