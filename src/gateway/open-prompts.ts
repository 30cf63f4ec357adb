import type { Link } from '../ipc/link.ts'
import { PromptMemory, type PromptMemoryServices } from '../relay/prompts/prompt-memory.ts'
import { LocalPrompts, type PromptStore } from '../relay/prompts/prompt-store.ts'

/** Input of `openPrompts`. */
interface OpenPromptsOptions extends Omit<PromptMemoryServices, 'store'> {
  /** Link to the owner, in a gateway of several workers. */
  readonly link: Link | undefined
  readonly redisUrl: string | undefined
  readonly namespace: string
}

/** Opens the memory of prompts: of this process, of the workers of this machine, or of all nodes on one Redis. */
export async function openPrompts(
  options: OpenPromptsOptions,
): Promise<{ readonly memory: PromptMemory; close(): Promise<void> }> {
  const store = await openStore(options)
  const { key, metrics } = options
  return { memory: new PromptMemory({ store, key, metrics }), close: () => store.close() }
}

// Loaded on demand: most gateways run alone and should not load the other modules.
async function openStore({
  link,
  redisUrl,
  namespace,
  key,
  metrics,
}: OpenPromptsOptions): Promise<PromptStore> {
  if (link) {
    const { OwnerPrompts } = await import('../relay/prompts/owner-prompts.ts')
    return new OwnerPrompts(link)
  }
  if (redisUrl === undefined) return new LocalPrompts()
  const { RedisPrompts } = await import('../relay/prompts/redis-prompts.ts')
  return new RedisPrompts({
    url: redisUrl,
    namespace,
    key,
    onUntrusted: () => metrics.add('promptsKnown', 1, 'untrusted'),
  })
}
