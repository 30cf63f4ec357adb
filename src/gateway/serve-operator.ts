import type { Logger } from 'pino'
import type { Workers } from '../cluster/join-through-owner.ts'
import type { Config } from '../config/config.ts'
import type { RefusedConfiguration } from '../domain/settings.ts'
import type { FileTexts } from '../config/read-file.ts'
import { readConfigInThread } from '../config/reading-thread.ts'
import { serveControl } from './control/serve-control.ts'
import type { AdministrationServices } from '../management/services.ts'
import { type ReloadResult, reloadOnChange } from './reload.ts'

/** What is needed to carry out the operator's commands. */
interface OperatorServices {
  readonly running: Pick<Config, 'environment' | 'builtIn' | 'priceFile'>
  readonly management: AdministrationServices
  /** Undefined if the gateway has only one process. */
  readonly workers: Workers | undefined
  /** Applies a valid configuration, or rejects and leaves everything unchanged. */
  readonly apply: (config: Config) => Promise<void>
  readonly onReload: (result: ReloadResult, refused?: RefusedConfiguration) => void
  readonly log: Logger
}

/**
 * Starts accepting commands from the operator over the socket in the data folder, and changes of the
 * configuration file. In a gateway of several workers, the first worker serves the socket, and the main
 * process watches the file.
 */
export async function serveOperator(services: OperatorServices): Promise<AsyncDisposable> {
  await using opened = new AsyncDisposableStack()
  const { running, management, workers, apply, onReload, log } = services
  const { environment, builtIn } = running
  if (!workers || workers.index === 1) {
    const control = await serveControl({ ...management, dataDir: environment.dataDir, log })
    opened.defer(() => control.close())
  }
  if (workers) {
    workers.link.answer('reload', async (texts: FileTexts) =>
      apply(await readConfigInThread(environment, builtIn, texts)),
    )
    workers.link.on('reloaded', onReload)
  } else {
    const reloading = await reloadOnChange(running, apply, onReload, log)
    opened.defer(() => reloading.close())
  }
  return opened.move()
}
