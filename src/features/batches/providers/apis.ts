import type { AttemptRequest } from '../../../call/request-stages.ts'
import { batchApiOf } from '../../../domain/protocols.ts'
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

/** Paths of requests that the API of Gemini takes in batches. Calls ask for long answers as streams. */
const GEMINI_PATH = /:(?:streamG|g)enerateContent\b/

/** The path of a call as that of a line: there is no other way to ask for the line of a long answer. */
export function pathOfLine(path: string): string {
  return path.replace(/:streamGenerateContent\b.*/, ':generateContent')
}

/** The batch API of a channel for a request; undefined if it has none for it. */
export function apiOf(
  { provider }: Channel,
  { protocol, path }: Pick<AttemptRequest, 'protocol' | 'path'>,
): BatchApiOfProvider | undefined {
  switch (batchApiOf(provider, protocol)) {
    case 'openai':
      if (!OPENAI_PATHS.has(path)) return undefined
      return provider === 'azure' ? azureBatches : openai
    case 'anthropic':
      return path === '/messages' ? anthropic : undefined
    case 'gemini':
      return GEMINI_PATH.test(path) ? gemini : undefined
    case undefined:
      return undefined
  }
}
