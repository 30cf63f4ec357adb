import type { Link } from '../ipc/link.ts'
import { Affinity, bindingLifetime } from '../relay/affinity/affinity.ts'
import { PromptMemory, type PromptMemoryServices } from '../relay/prompts/prompt-memory.ts'
import { LocalPrompts, type PromptStore } from '../relay/prompts/prompt-store.ts'

/** Input of `openPrompts`. */
interface OpenPromptsOptions extends Omit<PromptMemoryServices, 'store'> {
  /** Link to the owner, in a gateway of several workers. */
  readonly link: Link | undefined
  readonly redisUrl: string | undefined
  readonly namespace: string
}

/** What is remembered of conversations. */
interface OpenPrompts {
  readonly memory: PromptMemory
  readonly affinity: Affinity
  close(): Promise<void>
}

/**
 * Opens the memory of prompts and of sessions: of this process, of the workers of this machine, or of all nodes
 * on one Redis.
 */
export async function openPrompts(options: OpenPromptsOptions): Promise<OpenPrompts> {
  const { key, metrics } = options
  // A prompt of one turn continues no earlier one, so that Redis is read only for two or more.
  const prompts = await openStore(options, { owner: 'prompts', redis: 'prompt', fewest: 1 })
  const sessions = await openStore(options, {
    owner: 'sessions',
    redis: 'session',
    fewest: 0,
    lifetimeMs: bindingLifetime,
  })
  return {
    memory: new PromptMemory({ store: prompts, key, metrics }),
    affinity: new Affinity({ store: sessions, key, metrics, nowMs: () => performance.now() }),
    async close() {
      await Promise.all([prompts.close(), sessions.close()])
    },
  }
}

// Loaded on demand: most gateways run alone and should not load the other modules.
async function openStore(
  { link, redisUrl, namespace, key, metrics }: OpenPromptsOptions,
  kind: {
    readonly owner: 'prompts' | 'sessions'
    readonly redis: 'prompt' | 'session'
    readonly fewest: number
    readonly lifetimeMs?: (value: number) => number
  },
): Promise<PromptStore> {
  if (link) {
    const { OwnerPrompts } = await import('../relay/prompts/owner-prompts.ts')
    return new OwnerPrompts(link, kind.owner)
  }
  if (redisUrl === undefined) return new LocalPrompts(kind.lifetimeMs)
  const { RedisPrompts } = await import('../relay/prompts/redis-prompts.ts')
  return new RedisPrompts({
    url: redisUrl,
    namespace,
    kind: kind.redis,
    fewest: kind.fewest,
    lifetimeMs: kind.lifetimeMs,
    // A prompt that was remembered keeps its tokens; a session moves to another account.
    announcesChanges: kind.redis === 'session',
    key,
    onUntrusted: () => metrics.add('promptsKnown', 1, 'untrusted'),
  })
}
