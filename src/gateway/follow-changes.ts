import type { ApiKeys } from '../accounts/authentication/api-keys.ts'
import type { ChangeFeed } from '../cluster/change-feed.ts'
import type { DataChange } from '../domain/data-change.ts'

/**
 * Milliseconds after which stored settings are read again even without a message, because a message may be
 * lost.
 */
const REREAD_INTERVAL_MS = 60_000
/** Milliseconds until a failed read is tried again. */
const RETRY_MS = 500

/** The settings that were changed over HTTP. */
interface Stored {
  reread(): Promise<void>
}

/**
 * Applies changes that other nodes made to keys, users, channels, options, groups and prices, from the next
 * call on.
 */
export function followChangesOfOtherNodes(
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
  // Changes that arrive at about the same time cause only one read.
  const rereadIn = (ms: number): void => {
    soon ??= setTimeout(reread, ms).unref()
  }
  changes.listen((change: DataChange) => {
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
