import type { ApiKeys } from '../accounts/authentication/api-keys.ts'
import type { ChangeFeed } from '../cluster/change-feed.ts'
import type { Change } from '../domain/change.ts'

/**
 * Interval at which stored settings are read again in any case, because a message of another node may be
 * lost.
 */
const REREAD_INTERVAL_MS = 60_000
/** Delay before a failed reading is tried again. */
const RETRY_MS = 500

/** Settings that were set over HTTP. */
interface Stored {
  reread(): Promise<void>
}

/**
 * Applies changes made on other nodes from the next call on: keys and users, channels, options, groups and
 * prices.
 */
export function followChanges(
  changes: ChangeFeed,
  apiKeys: ApiKeys,
  stored: Stored,
  warn: (sentence: string) => void,
): { stop(): void } {
  let soon: NodeJS.Timeout | undefined
  let failed = false
  const reread = (): void => {
    soon = undefined
    stored.reread().then(
      () => (failed = false),
      (error: unknown) => {
        if (!failed) warn(`settings of another node cannot be read yet: ${String(error)}`)
        failed = true
        rereadIn(RETRY_MS)
      },
    )
  }
  // One read for all changes that arrive at about the same time.
  const rereadIn = (ms: number): void => {
    soon ??= setTimeout(reread, ms).unref()
  }
  changes.listen((change: Change) => {
    apiKeys.applyChange(change)
    if (change.of === 'settings' || change.of === 'anything') rereadIn(0)
  })
  const regularly = setInterval(() => rereadIn(0), REREAD_INTERVAL_MS).unref()
  return {
    stop() {
      clearInterval(regularly)
      clearTimeout(soon)
    },
  }
}
