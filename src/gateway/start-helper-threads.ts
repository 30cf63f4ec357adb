import type { Logger } from 'pino'
import { HelperThreads } from '../call/helper-threads.ts'
import { TokenCounter } from '../call/token-counter.ts'

/** Threads that work for the main thread. */
export interface StartedHelperThreads {
  readonly threads: HelperThreads
  readonly tokens: TokenCounter
  /** Resolves when the tokenizer is loaded, so that tokens can be counted. */
  readonly tokensLoaded: Promise<void>
}

/**
 * Starts the tokenizer's thread before the modules that serve calls are loaded, because both take about as
 * long, and the gateway is ready when both are loaded. A given tokenizer is used instead, and stays open.
 */
export function startHelperThreads(
  opened: AsyncDisposableStack,
  log: Logger,
  given?: TokenCounter,
): StartedHelperThreads {
  const threads = new HelperThreads(log)
  const tokens = given ?? opened.adopt(new TokenCounter(Math.random(), threads), (open) => open.close())
  return { threads, tokens, tokensLoaded: tokens.load() }
}
