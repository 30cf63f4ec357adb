import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import process from 'node:process'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import type { RefusedConfiguration } from '../domain/settings.ts'
import { ConfigError, formatDiagnostic } from '../config/diagnostics.ts'
import { ReadingThread } from '../config/reading-thread.ts'
import { readTextFile } from '../config/text-file.ts'

/** Whether a changed configuration was applied, or refused because of errors. */
export type ReloadResult = 'applied' | 'refused'

/** Handle of a running watch on the configuration files; `close` ends it. */
export interface ReloadHandle {
  close(): Promise<void>
}

/**
 * Milliseconds for which a file must be unchanged before it is read, because editors write in several steps.
 */
const STABLE_MS = 100
const WARNINGS_AT_ONCE = 200

/**
 * Reloads the configuration after a change of gateway.yaml or of the prices file that it names, and on
 * SIGHUP. If a file has errors, nothing is applied; the errors are logged with file and line, and the running
 * configuration stays. `apply` applies a valid configuration, or rejects and changes nothing.
 */
export async function reloadOnChange(
  running: Pick<Config, 'environment' | 'builtIn' | 'priceFile' | 'texts'>,
  apply: (config: Config) => Promise<void>,
  onResult: (result: ReloadResult, refused?: RefusedConfiguration) => void,
  log: Logger,
): Promise<ReloadHandle> {
  // Reads run one after another. All changes that arrive during a read share the next one.
  const thread = new ReadingThread()
  let reading = Promise.resolve()
  let waiting = false
  let isClosed = false
  let applied = filesOf(running)
  const reload = (): void => {
    if (waiting || isClosed) return
    waiting = true
    reading = reading.then(async () => {
      waiting = false
      const { result, files, refused, isOutdated } = await read(thread, running, apply, log)
      if (result === 'applied') applied = files
      onResult(result, refused)
      // Files with errors are watched too, because the next change may correct them. That may have happened before
      // the watch began.
      if ((await watcher?.follow([...applied, ...files])) && isOutdated()) reload()
    })
  }
  const { configFile } = running.environment
  const watcher = configFile === undefined ? undefined : await watch(configFile, applied, reload, log)
  process.on('SIGHUP', reload)
  // The start may have taken long, and the files may have been written since they were read.
  const { texts, priceFile } = running
  if (hasChanged(configFile, texts.text) || hasChanged(priceFile?.path, texts.prices)) reload()
  return {
    async close() {
      process.off('SIGHUP', reload)
      isClosed = true
      await reading
      await watcher?.close()
      await thread[Symbol.asyncDispose]()
    },
  }
}

// chokidar also notices when another file is renamed over the watched one. It is imported on demand, because
// files hardly change in the first milliseconds.
async function watch(
  file: string,
  more: readonly string[],
  changed: () => void,
  log: Logger,
): Promise<FileWatcher> {
  const { watch: watchFiles } = await import('chokidar')
  const open = async (files: ReadonlySet<string>) => {
    const watcher = watchFiles([...files], {
      ignoreInitial: true,
      awaitWriteFinish: { stabilityThreshold: STABLE_MS, pollInterval: 25 },
    })
    watcher.on('add', changed).on('change', changed)
    watcher.on('error', (error) => log.error({ err: error }, 'a file of the configuration cannot be watched'))
    await new Promise<void>((ready) => watcher.once('ready', () => ready()))
    return watcher
  }
  let files = new Set([resolve(file), ...more])
  let watcher = await open(files)
  return {
    async follow(others) {
      const next = new Set([resolve(file), ...others])
      if (next.size === files.size && [...next].every((one) => files.has(one))) return false
      // A new watcher reports when it is ready, which none does for a file that is added to it.
      const before = watcher
      watcher = await open(next)
      files = next
      await before.close()
      return true
    },
    close: () => watcher.close(),
  }
}

/** A watcher of the configuration file. */
interface FileWatcher {
  /**
   * Watches these files in addition to the configuration file, and stops watching files that were given
   * before. Resolves once the watch has begun, to whether that changed anything.
   */
  follow(others: readonly string[]): Promise<boolean>
  close(): Promise<void>
}

function filesOf({ priceFile }: Pick<Config, 'priceFile'>): readonly string[] {
  return priceFile ? [priceFile.path] : []
}

/** What reading the configuration files resulted in, and the files to watch besides gateway.yaml. */
interface Reading {
  readonly result: ReloadResult
  readonly files: readonly string[]
  readonly refused?: RefusedConfiguration
  /** Whether the files besides gateway.yaml have changed since the reading. */
  readonly isOutdated: () => boolean
}

async function read(
  thread: ReadingThread,
  { environment, builtIn }: Pick<Config, 'environment' | 'builtIn'>,
  apply: (config: Config) => Promise<void>,
  log: Logger,
): Promise<Reading> {
  try {
    const config = await thread.read(environment, builtIn)
    // Checks the text that was read, not the file, which may have been emptied since.
    refuseEmpty(config)
    await apply(config)
    await warn(config.warnings, log)
    log.info({ channels: config.settings.channels.length }, 'configuration applied')
    return {
      result: 'applied',
      files: filesOf(config),
      isOutdated: () => hasChanged(config.priceFile?.path, config.texts.prices),
    }
  } catch (error) {
    const { diagnostics: found, unread } = error instanceof ConfigError ? error : new ConfigError([])
    const mistakes = found.length > 0 ? found.map(formatDiagnostic) : [String(error)]
    log.error({ mistakes }, 'configuration refused; the running one stays')
    const [first] = found
    const refused: RefusedConfiguration = {
      atMs: Date.now(),
      file: first?.file ?? environment.configFile ?? '',
      line: first?.line ?? null,
      message: mistakes[0] ?? '',
      mistakes: mistakes.length,
    }
    return {
      result: 'refused',
      files: [...found.map(({ file }) => resolve(file)), ...unread],
      refused,
      isOutdated: () => unread.some((file) => existsSync(file)),
    }
  }
}

// Logs the warnings, with a pause after every few lines, because a large file may cause thousands of
// warnings.
async function warn(warnings: Config['warnings'], log: Logger): Promise<void> {
  for (const [index, warning] of warnings.entries()) {
    log.warn(formatDiagnostic(warning))
    if (index % WARNINGS_AT_ONCE === WARNINGS_AT_ONCE - 1) await nextTurn()
  }
}

// An empty file means "no channels". At a start that may be intended, but while the gateway runs, an editor
// has probably emptied the file and not written it yet. White space and comments are as empty.
function refuseEmpty({ environment: { configFile }, fileNode, priceFile }: Config): void {
  const given = [
    { file: configFile, tree: fileNode },
    { file: priceFile?.path, tree: priceFile?.tree },
  ]
  for (const { file, tree } of given) {
    if (file !== undefined && tree === undefined)
      throw new ConfigError([{ file, path: '', message: 'expected more than an empty file' }])
  }
}

// A pipe can be read only once. A missing file is noticed by the watcher once it is there again.
function hasChanged(file: string | undefined, text: string | undefined): boolean {
  if (file === undefined) return false
  try {
    return statSync(file, { throwIfNoEntry: false })?.isFile() === true && readTextFile(file) !== text
  } catch {
    // The reading then reports why the file cannot be read.
    return true
  }
}
