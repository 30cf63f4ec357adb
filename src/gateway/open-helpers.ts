import type { Logger } from 'pino'
import { HelperThreads } from '../relay/helper-threads.ts'
import { TokenCounter } from '../relay/token-counter.ts'

/** The threads that help the main thread. */
export interface Helpers {
  readonly threads: HelperThreads
  readonly tokens: TokenCounter
  /** Resolves when tokens can be counted. */
  readonly tokensLoaded: Promise<void>
}

/**
 * Starts the tokenizer's thread, before the modules that serve calls are loaded: it takes as long as they do,
 * and the gateway is ready when both are.
 */
export function openHelpers(opened: AsyncDisposableStack, log: Logger): Helpers {
  const threads = new HelperThreads(log)
  const tokens = opened.adopt(new TokenCounter(Math.random(), threads), (open) => open.close())
  // Closed before the tokenizer, whose end would otherwise count as a failed start.
  opened.adopt(threads, (open) => open.close())
  return { threads, tokens, tokensLoaded: tokens.load() }
}
