import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import type { RefusedConfiguration } from '../domain/settings.ts'
import { serveControl } from './control/serve-control.ts'
import type { AdministrationServices } from '../management/services.ts'
import { type ReloadResult, reloadOnChange } from './reload.ts'

/** What is needed to carry out the operator's commands. */
interface OperatorServices {
  readonly running: Pick<Config, 'environment' | 'builtIn' | 'priceFile' | 'texts'>
  readonly management: AdministrationServices
  /** Applies a valid configuration, or rejects and leaves everything unchanged. */
  readonly apply: (config: Config) => Promise<void>
  readonly onReload: (result: ReloadResult, refused?: RefusedConfiguration) => void
  readonly log: Logger
}

/**
 * Starts accepting commands from the operator over the socket in the data folder, and changes of the
 * configuration file.
 */
export async function serveOperator(services: OperatorServices): Promise<AsyncDisposable> {
  await using opened = new AsyncDisposableStack()
  const { running, management, apply, onReload, log } = services
  const control = await serveControl({ ...management, dataDir: running.environment.dataDir, log })
  opened.defer(() => control.close())
  const reloading = await reloadOnChange(running, apply, onReload, log)
  opened.defer(() => reloading.close())
  return opened.move()
}
