import type { BankNodes } from '../cluster/join-cluster.ts'
import { SessionAffinity, SESSION_DIGEST_RULES } from '../relay/affinity/affinity.ts'
import { CacheBreaks } from '../relay/affinity/cache-breaks.ts'
import { LocalPreviousCalls, type PreviousCalls } from '../relay/affinity/previous-calls.ts'
import { type DigestRules, type DigestStore, LocalDigests } from '../relay/digests/digest-store.ts'
import {
  PROMPT_DIGEST_RULES,
  PromptMemory,
  type PromptMemoryServices,
} from '../relay/prompts/prompt-memory.ts'

/** Options for opening the memory of prompts and sessions. */
interface ConversationMemoryOptions extends Omit<PromptMemoryServices, 'store'> {
  /** Nodes on the shared database; undefined if this process is alone. */
  readonly others: BankNodes | undefined
  readonly redisUrl: string | undefined
  readonly namespace: string
}

/** What the gateway remembers about conversations to estimate prompts and to find prompt caches. */
interface ConversationMemory {
  readonly prompts: PromptMemory
  readonly affinity: SessionAffinity
  readonly breaks: CacheBreaks
  close(): Promise<void>
}

/**
 * Opens the memory of prompts and sessions. It belongs to this process, or to all nodes that use one Redis.
 */
export async function openConversationMemory(
  options: ConversationMemoryOptions,
): Promise<ConversationMemory> {
  const { key, metrics } = options
  const [prompts, sessions, previous] = await Promise.all([
    openStore(PROMPT_DIGEST_RULES, options),
    openStore(SESSION_DIGEST_RULES, options),
    openPreviousCalls(options),
  ])
  return {
    prompts: new PromptMemory({ store: prompts, key, metrics }),
    affinity: new SessionAffinity({ store: sessions, key, metrics, nowMs: () => performance.now() }),
    breaks: new CacheBreaks({ previous, key, metrics }),
    async close() {
      await Promise.all([prompts.close(), sessions.close(), previous.close()])
    },
  }
}

// The modules for Redis are loaded on demand, because most gateways do not use it.
async function openStore(
  rules: DigestRules,
  { redisUrl, namespace, key, metrics }: ConversationMemoryOptions,
): Promise<DigestStore> {
  if (redisUrl === undefined) return new LocalDigests()
  const { RedisDigests } = await import('../relay/digests/redis-digests.ts')
  const store = new RedisDigests(rules, {
    url: redisUrl,
    namespace,
    key,
    onUntrusted: () => countUntrusted(metrics),
  })
  // Wait for the first connection to Redis, so that other nodes learn even of this node's first calls.
  await store.firstAttempt
  return store
}

async function openPreviousCalls({
  others,
  redisUrl,
  namespace,
  key,
  metrics,
}: ConversationMemoryOptions): Promise<PreviousCalls> {
  if (redisUrl === undefined) return new LocalPreviousCalls(() => !others || others.names().length <= 1)
  const { RedisPreviousCalls } = await import('../relay/affinity/redis-previous-calls.ts')
  const calls = new RedisPreviousCalls({
    url: redisUrl,
    namespace,
    key,
    onUntrusted: () => countUntrusted(metrics),
  })
  await calls.firstAttempt
  return calls
}

function countUntrusted(metrics: ConversationMemoryOptions['metrics']): void {
  metrics.add('promptsKnown', 1, 'untrusted')
}
