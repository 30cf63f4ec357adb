import type { Link } from '../ipc/link.ts'
import { Affinity, SESSION_DIGESTS } from '../relay/affinity/affinity.ts'
import { CacheBreaks } from '../relay/affinity/cache-breaks.ts'
import { LocalPreviousCalls, OwnerPreviousCalls } from '../relay/affinity/previous-calls.ts'
import { type DigestRules, type DigestStore, LocalDigests } from '../relay/digests/digest-store.ts'
import { PROMPT_DIGESTS, PromptMemory, type PromptMemoryServices } from '../relay/prompts/prompt-memory.ts'

/** Options of `openConversationMemory`. */
interface ConversationMemoryOptions extends Omit<PromptMemoryServices, 'store'> {
  /** Connection to the main process, if the gateway has several workers. */
  readonly link: Link | undefined
  readonly redisUrl: string | undefined
  readonly namespace: string
}

/** What the gateway remembers about conversations to estimate prompts and to find prompt caches. */
interface ConversationMemory {
  readonly prompts: PromptMemory
  readonly affinity: Affinity
  readonly breaks: CacheBreaks
  close(): Promise<void>
}

/**
 * Opens the memory of prompts and sessions. It belongs to this process, to the workers of this machine, or to
 * all nodes that use one Redis.
 */
export async function openConversationMemory(
  options: ConversationMemoryOptions,
): Promise<ConversationMemory> {
  const { key, metrics } = options
  const prompts = await openStore(PROMPT_DIGESTS, options)
  const sessions = await openStore(SESSION_DIGESTS, options)
  return {
    prompts: new PromptMemory({ store: prompts, key, metrics }),
    affinity: new Affinity({ store: sessions, key, metrics, nowMs: () => performance.now() }),
    breaks: new CacheBreaks({
      previous: options.link ? new OwnerPreviousCalls(options.link) : new LocalPreviousCalls(),
      key,
      metrics,
    }),
    async close() {
      await Promise.all([prompts.close(), sessions.close()])
    },
  }
}

// Loaded on demand, because most gateways have one process and need no other module.
async function openStore(
  rules: DigestRules,
  { link, redisUrl, namespace, key, metrics }: ConversationMemoryOptions,
): Promise<DigestStore> {
  if (link) {
    const { OwnerDigests } = await import('../relay/digests/owner-digests.ts')
    return new OwnerDigests(link, rules.kind)
  }
  if (redisUrl === undefined) return new LocalDigests(rules)
  const { RedisDigests } = await import('../relay/digests/redis-digests.ts')
  const onUntrusted = (): void => metrics.add('promptsKnown', 1, 'untrusted')
  return new RedisDigests(rules, { url: redisUrl, namespace, key, onUntrusted })
}
