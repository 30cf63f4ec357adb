import type { BankNodes } from '../cluster/join-cluster.ts'
import { SessionAffinity } from '../features/affinity/affinity.ts'
import { CacheBreaks } from '../features/affinity/cache-breaks.ts'
import { LocalPreviousCalls, type PreviousCalls } from '../features/affinity/previous-calls.ts'
import { type DigestStore, LocalDigests } from '../call/digests/digest-store.ts'
import { PromptMemory, type PromptMemoryServices } from '../features/prompt-bounds/prompt-memory.ts'
import { Sessions } from '../call/session.ts'
import type { SharedTableOptions } from '../redis/shared-table.ts'

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
  readonly sessions: Sessions
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
  const { prompts, bindings, previous } = await openStores(options)
  return {
    prompts: new PromptMemory({ store: prompts, key, metrics }),
    sessions: new Sessions(key),
    affinity: new SessionAffinity({ store: bindings, metrics, nowMs: () => performance.now() }),
    breaks: new CacheBreaks({ previous, key, metrics }),
    async close() {
      await Promise.all([prompts.close(), bindings.close(), previous.close()])
    },
  }
}

interface Stores {
  readonly prompts: DigestStore
  readonly bindings: DigestStore
  readonly previous: PreviousCalls
}

async function openStores({
  others,
  redisUrl: url,
  namespace,
  key,
  metrics,
}: ConversationMemoryOptions): Promise<Stores> {
  if (url === undefined)
    return {
      prompts: new LocalDigests(),
      bindings: new LocalDigests(),
      previous: new LocalPreviousCalls(() => !others || others.names().length <= 1),
    }
  const onUntrusted: SharedTableOptions['onUntrusted'] = (kind) => metrics.add('untrustedEntries', 1, kind)
  const options: SharedTableOptions = { url, namespace, key, onUntrusted }
  // The modules for Redis are loaded on demand, because most gateways do not use it.
  const { SharedDigests } = await import('../call/digests/shared-digests.ts')
  const { SharedPreviousCalls } = await import('../features/affinity/shared-previous-calls.ts')
  const prompts = new SharedDigests('prompt', options)
  const bindings = new SharedDigests('session', options)
  const previous = new SharedPreviousCalls(options)
  // Wait for the first connections, so that other nodes learn even of this node's first calls.
  await Promise.all([prompts.firstAttempt, bindings.firstAttempt, previous.firstAttempt])
  return { prompts, bindings, previous }
}
