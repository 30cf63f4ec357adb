import { resolve } from 'node:path'
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
 * Watches the configuration file, and the prices file that it names. A file with mistakes is refused whole and logged with file and line; the
 * running configuration stays. `apply` takes over a valid one, or rejects and leaves everything as it was.
 */
export async function reloadOnChange(
  running: Pick<Config, 'environment' | 'builtIn' | 'priceFile'>,
  apply: (config: Config) => Promise<void>,
  onResult: (result: ReloadResult) => void,
  log: Logger,
): Promise<Reloading> {
  // One at a time, in the order of the changes. Changes that arrive during a read share the next one.
  let reading = Promise.resolve()
  let waiting = false
  let applied = filesOf(running)
  const reload = (): void => {
    if (waiting) return
    waiting = true
    reading = reading.then(async () => {
      waiting = false
      const { result, files } = await read(running, apply, log)
      if (result === 'applied') applied = files
      // The next change may correct the file that has the mistake.
      watcher?.follow([...new Set([...applied, ...files])])
      onResult(result)
    })
  }
  process.on('SIGHUP', reload)
  const { configFile } = running.environment
  const watcher = configFile === undefined ? undefined : await watch(configFile, reload)
  watcher?.follow(applied)
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
async function watch(file: string, changed: () => void): Promise<FileWatcher> {
  const { watch: watchFiles } = await import('chokidar')
  const watcher = watchFiles(file, {
    ignoreInitial: true,
    awaitWriteFinish: { stabilityThreshold: STABLE_MS, pollInterval: 25 },
  })
  watcher.on('add', changed).on('change', changed)
  await new Promise<void>((ready) => watcher.once('ready', () => ready()))
  let others: readonly string[] = []
  return {
    follow(files) {
      const next = files.filter((one) => one !== resolve(file))
      watcher.unwatch(others.filter((one) => !next.includes(one)))
      watcher.add(next.filter((one) => !others.includes(one)))
      others = next
    },
    close: () => watcher.close(),
  }
}

/** A watcher of the configuration file. */
interface FileWatcher {
  /** Watches these files as well, and no others that were given before. */
  follow(files: readonly string[]): void
  close(): Promise<void>
}

function filesOf({ priceFile }: Pick<Config, 'priceFile'>): readonly string[] {
  return priceFile ? [priceFile.path] : []
}

/** The result of a reading, and the files that it concerns besides gateway.yaml. */
interface Reading {
  readonly result: ReloadResult
  readonly files: readonly string[]
}

async function read(
  { environment, builtIn }: Pick<Config, 'environment' | 'builtIn'>,
  apply: (config: Config) => Promise<void>,
  log: Logger,
): Promise<Reading> {
  try {
    const config = await readConfigInThread(environment, builtIn)
    // Checks the text that was read, because the file may have been emptied since.
    refuseEmpty(config)
    await apply(config)
    await warn(config.warnings, log)
    log.info({ channels: config.settings.channels.length }, 'configuration applied')
    return { result: 'applied', files: filesOf(config) }
  } catch (error) {
    const mistakes = error instanceof ConfigError ? error.diagnostics.map(formatDiagnostic) : [String(error)]
    log.error({ mistakes }, 'configuration refused; the running one stays')
    const named = error instanceof ConfigError ? error.diagnostics.map(({ file }) => resolve(file)) : []
    return { result: 'refused', files: named }
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
function refuseEmpty({ environment: { configFile }, texts, priceFile }: Config): void {
  const given = [
    { file: configFile, text: texts.text },
    { file: priceFile?.path, text: texts.prices },
  ]
  for (const { file, text } of given) {
    if (file !== undefined && text === '')
      throw new ConfigError([{ file, path: '', message: 'expected more than an empty file' }])
  }
}
