import type { ScannedObject } from '../json-scan.ts'

/** What the gateway reads in a chat request; everything else passes as it came. */
export interface ChatRequest {
  readonly model: string
  readonly stream: boolean
  /** The caller asked for the chunk with usage. */
  readonly includeUsage: boolean
  readonly n: number
  /** The larger of max_tokens and max_completion_tokens; undefined where neither is named. */
  readonly maxTokens: number | undefined
  readonly messageCount: number
  /** web_search_options is present. */
  readonly webSearch: boolean
  /** At least as many tokens as the prompt can have. */
  readonly promptBound: number
}

/** Checks every row of the table in `docs/api.md: Chat completions`; throws `invalid_request` naming the field. */
export function readChatRequest(_scan: ScannedObject): ChatRequest {
  throw new Error('not yet')
}
