import { promptTokens, type Usage, cacheWriteTokens } from '../usage.ts'
import type { ReplyIdentity } from '../codec.ts'
import type { ReplyContext } from '../conversation.ts'
import { jsonArrayOf, renderObject } from '../json/json-edit.ts'

/** Settings that a response object repeats from its request, with their default values as JSON text. */
const SETTINGS = {
  background: 'false',
  instructions: 'null',
  max_output_tokens: 'null',
  max_tool_calls: 'null',
  metadata: '{}',
  parallel_tool_calls: 'true',
  previous_response_id: 'null',
  prompt_cache_key: 'null',
  reasoning: '{"effort":null,"summary":null}',
  safety_identifier: 'null',
  service_tier: '"default"',
  store: 'false',
  temperature: '1',
  text: '{"format":{"type":"text"}}',
  tool_choice: '"auto"',
  tools: '[]',
  top_logprobs: '0',
  top_p: '1',
  truncation: '"disabled"',
  user: 'null',
} as const

/**
 * Settings that a response repeats as the client wrote them. `store` and `service_tier` are not among them,
 * because the client does not decide them.
 */
export const REPEATED_FIELDS: readonly string[] = Object.keys(SETTINGS).filter(
  (name) => name !== 'store' && name !== 'service_tier',
)

/** What a response object states at one point of its stream. */
interface State {
  readonly status: 'in_progress' | 'completed' | 'incomplete' | 'failed'
  readonly incompleteReason?: string | undefined
  readonly error?: { readonly code: string; readonly message: string }
  /** The items that are complete, as JSON texts. */
  readonly output: readonly string[]
  readonly usage?: Usage | undefined
}

/** Writes the response object, which a stream contains several times with a different status. */
export class ResponseObject {
  readonly id: string
  readonly #created: number
  readonly #settings: string
  #model = ''

  constructor({ id, created }: ReplyIdentity, replyContext: ReplyContext | undefined) {
    this.id = id.startsWith('resp_') ? id : `resp_${id}`
    this.#created = created
    const repeated = replyContext?.repeated
    this.#settings = renderObject(
      Object.entries(SETTINGS).map(([name, text]) => [name, repeated?.get(name) ?? text]),
    ).slice(1, -1)
  }

  /** The name of the model as the upstream reports it. */
  set model(name: string) {
    this.#model = name
  }

  /** The part of the response's id that the ids of its items contain as well. */
  get itemKey(): string {
    return this.id.slice('resp_'.length)
  }

  /** Renders the response object as JSON text. */
  write({ status, incompleteReason, error, output, usage }: State): string {
    const head = JSON.stringify({
      id: this.id,
      object: 'response',
      created_at: this.#created,
      status,
      error: error ?? null,
      incomplete_details: incompleteReason === undefined ? null : { reason: incompleteReason },
      model: this.#model,
    })
    const usageText = usage ? JSON.stringify(usageOut(usage)) : 'null'
    return `${head.slice(0, -1)},"output":${jsonArrayOf(output)},${this.#settings},"usage":${usageText}}`
  }
}

/** Renders usage. In this protocol, the input includes tokens read from and written to a cache. */
function usageOut(usage: Usage): object {
  const input = promptTokens(usage)
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: usage.cacheRead,
      cache_write_tokens: cacheWriteTokens(usage),
    },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: input + usage.output,
  }
}
