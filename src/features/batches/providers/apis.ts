import type { AttemptRequest } from '../../../call/request-stages.ts'
import type { Channel } from '../../../domain/records/channel.ts'
import { anthropic } from './anthropic.ts'
import { azureBatches } from './azure.ts'
import { gemini } from './gemini.ts'
import { openai } from './openai.ts'
import type { BatchApiOfProvider } from './provider-batches.ts'

/** Paths of requests that the APIs of OpenAI and Azure take in batches. */
const OPENAI_PATHS: ReadonlySet<string> = new Set([
  '/chat/completions',
  '/responses',
  '/embeddings',
  '/completions',
  '/moderations',
])

/** The batch API of a channel for a request; undefined if it has none for it. */
export function apiOf(
  { provider }: Channel,
  { protocol, path }: Pick<AttemptRequest, 'protocol' | 'path'>,
): BatchApiOfProvider | undefined {
  if (protocol === 'chat' || protocol === 'responses') {
    if (!OPENAI_PATHS.has(path)) return undefined
    return provider === 'azure' ? azureBatches : provider === 'generic' ? openai : undefined
  }
  if (provider !== 'generic') return undefined
  if (protocol === 'messages' && path === '/messages') return anthropic
  return protocol === 'gemini' && path.endsWith(':generateContent') ? gemini : undefined
}
