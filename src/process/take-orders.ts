import type { Logger } from 'pino'
import type { Workers } from '../cluster/join-through-owner.ts'
import { type Config, readConfig } from '../config/config.ts'
import type { Environment } from '../config/environment.ts'
import { serveControl } from '../control/serve-control.ts'
import type { AdministrationParts } from '../management/parts.ts'
import { type ReloadResult, reloadOnChange } from './reload.ts'

/** Services that carry out an operator's orders. */
interface OrderParts {
  readonly environment: Environment
  readonly management: AdministrationParts
  /** Undefined for a gateway of one process. */
  readonly workers: Workers | undefined
  /** Takes over a valid configuration, or rejects and leaves everything as it was. */
  readonly apply: (config: Config) => Promise<void>
  readonly onReload: (result: ReloadResult) => void
  readonly log: Logger
}

/**
 * Begins to take orders of the operator: commands over the socket in the data folder, and changes of the
 * configuration file. Of several workers the first serves the socket, and their owner watches the file.
 */
export async function takeOrders(parts: OrderParts): Promise<AsyncDisposable> {
  await using opened = new AsyncDisposableStack()
  const { environment, management, workers, apply, onReload, log } = parts
  if (!workers || workers.index === 1) {
    const control = await serveControl({ ...management, dataDir: environment.dataDir, log })
    opened.defer(() => control.close())
  }
  if (workers) {
    workers.link.answer('reload', (text: string) => apply(readConfig(environment, text)))
    workers.link.on('reloaded', onReload)
  } else {
    const reloading = await reloadOnChange(environment, apply, onReload, log)
    opened.defer(() => reloading.close())
  }
  return opened.move()
}
