import { readConfig } from '../../config/config.ts'
import type { Environment } from '../../config/environment.ts'
import { LiveConfig } from '../../config/live-config.ts'
import { type AppliedPrice, listPrices } from '../../management/models/list-prices.ts'
import type { Store } from '../../store/store.ts'

/**
 * Reads the prices of models from the configuration files alone, for a gateway that was never started: no
 * settings can have been changed over HTTP.
 */
export async function pricesOfFiles(environment: Environment, outdated: boolean): Promise<AppliedPrice[]> {
  const store = { read: () => Promise.resolve({ channels: [], entries: [] }) } as unknown as Pick<
    Store,
    'read'
  >
  const liveConfig = await LiveConfig.open(store, readConfig(environment), () => {})
  return listPrices({ store, settings: () => liveConfig.settings, liveConfig, nowMs: Date.now }, { outdated })
}
