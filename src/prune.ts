import type { Logger } from 'pino'
import { pruneUsage } from './store/prune-usage.ts'
import type { Store } from './store/store.ts'

const FIRST_MS = 60_000
const HOUR_MS = 3_600_000

/**
 * Removes usage rows that are older than the operator keeps them, a minute after the start and then every hour. `days` is
 * asked at each run. `docs/configuration.md: Options`, `usage_log_days`.
 */
export function pruneRegularly(store: Store, days: () => number, log: Logger): { stop(): void } {
  const stopping = new AbortController()
  const run = async (): Promise<void> => {
    try {
      const removed = await pruneUsage(store, days(), Date.now(), stopping.signal)
      if (removed > 0) log.info({ removed }, 'old usage rows removed')
    } catch (error) {
      if (!stopping.signal.aborted)
        log.warn({ err: error }, 'old usage rows were not removed; tried again in an hour')
    }
    timer = setTimeout(() => void run(), HOUR_MS).unref()
  }
  let timer = setTimeout(() => void run(), FIRST_MS).unref()
  return {
    stop() {
      stopping.abort()
      clearTimeout(timer)
    },
  }
}
