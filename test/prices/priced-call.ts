/**
 * A call as a provider's price page prices it. The expected cost is the page's arithmetic in literal numbers: USD per
 * million tokens times tokens, or USD per use. None of them is computed by the gateway's code.
 */
export interface DocumentedExample {
  readonly provider: string
  readonly example: string
  readonly page: string
  readonly usd: number
  readonly call: PricedCall
  /** What the row of the call says, where it is not the standard tier. */
  readonly tier?: string
  readonly region?: string
}

/** A request, and the answer of the simulated upstream. */
export interface PricedCall {
  readonly upstream: Upstream
  /** The client's path; the dialect of the channel is the same. */
  readonly path: string
  readonly model: string
  readonly body: object | FormData
  readonly answer: object | Buffer
  readonly headers?: Readonly<Record<string, string>>
  /** Hour of the call in UTC, for providers that price by it. */
  readonly hour?: number
}

/** Hosts, and providers whose addresses are the operator's. */
export type Upstream =
  | 'api.openai.com'
  | 'api.anthropic.com'
  | 'generativelanguage.googleapis.com'
  | 'api.deepseek.com'
  | 'api.x.ai'
  | 'api.mistral.ai'
  | 'api.cohere.com'
  | 'openrouter.ai'
  | 'azure'
  | 'bedrock'
  | 'vertex'

export const MILLION = 1_000_000
const HI = [{ role: 'user', content: 'hi' }]

interface ChatUsage {
  readonly prompt: number
  readonly output: number
  readonly promptDetails?: object
  readonly outputDetails?: object
}

/** A chat completion; `tier` is what the answer states. */
export function chat(
  model: string,
  { prompt, output, promptDetails, outputDetails }: ChatUsage,
  more: Partial<PricedCall> & { readonly tier?: string; readonly fields?: object } = {},
): PricedCall {
  const { tier, fields, ...others } = more
  return {
    upstream: 'api.openai.com',
    path: '/v1/chat/completions',
    model,
    body: { model, messages: HI, ...fields },
    answer: {
      id: 'c',
      object: 'chat.completion',
      created: 7,
      model,
      choices: [{ index: 0, message: { role: 'assistant', content: 'said' }, finish_reason: 'stop' }],
      ...(tier !== undefined && { service_tier: tier }),
      usage: {
        prompt_tokens: prompt,
        completion_tokens: output,
        total_tokens: prompt + output,
        ...(promptDetails && { prompt_tokens_details: promptDetails }),
        ...(outputDetails && { completion_tokens_details: outputDetails }),
      },
    },
    ...others,
  }
}

/** Web searches of a response: the tool of the request, and the items of the answer. */
export function webSearches(count: number): { readonly tools: object[]; readonly items: object[] } {
  return {
    tools: [{ type: 'web_search' }],
    items: Array.from({ length: count }, (_, at) => ({
      id: `w${at + 1}`,
      type: 'web_search_call',
      status: 'completed',
      action: { type: 'search', query: 'q' },
    })),
  }
}

/** A response of the responses dialect with items of tools. */
export function response(
  model: string,
  usage: { readonly input: number; readonly output: number; readonly inputDetails?: object },
  {
    tier = 'default',
    items = [],
    tools = [],
    upstream = 'api.openai.com',
  }: {
    readonly tier?: string
    readonly items?: readonly object[]
    readonly tools?: readonly object[]
    readonly upstream?: Upstream
  } = {},
): PricedCall {
  const said = {
    id: 'm',
    type: 'message',
    status: 'completed',
    role: 'assistant',
    content: [{ type: 'output_text', text: 'said', annotations: [] }],
  }
  return {
    upstream,
    path: '/v1/responses',
    model,
    body: { model, input: 'hi', store: false, ...(tools.length > 0 && { tools }) },
    answer: {
      id: 'resp_1',
      object: 'response',
      created_at: 7,
      status: 'completed',
      model,
      service_tier: tier,
      output: [...items, said],
      usage: {
        input_tokens: usage.input,
        input_tokens_details: usage.inputDetails ?? { cached_tokens: 0 },
        output_tokens: usage.output,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: usage.input + usage.output,
      },
    },
  }
}

export function message(
  model: string,
  usage: object,
  more: Partial<PricedCall> & { fields?: object } = {},
): PricedCall {
  const { fields, ...others } = more
  return {
    upstream: 'api.anthropic.com',
    path: '/v1/messages',
    model,
    body: { model, max_tokens: 9, messages: HI, ...fields },
    answer: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text: 'said' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { service_tier: 'standard', ...usage },
    },
    ...others,
  }
}

export function gemini(
  model: string,
  usage: { readonly prompt: number; readonly output: number; readonly thoughts?: number } & Record<
    string,
    unknown
  >,
  more: Partial<PricedCall> & { readonly candidate?: object; readonly fields?: object } = {},
): PricedCall {
  const { prompt, output, thoughts = 0, ...metadata } = usage
  const { candidate, fields, ...others } = more
  return {
    upstream: 'generativelanguage.googleapis.com',
    path: `/v1beta/models/${model}:generateContent`,
    model,
    body: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }], ...fields },
    answer: {
      candidates: [
        {
          content: { role: 'model', parts: [{ text: 'said' }] },
          finishReason: 'STOP',
          index: 0,
          ...candidate,
        },
      ],
      usageMetadata: {
        promptTokenCount: prompt,
        candidatesTokenCount: output,
        ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
        totalTokenCount: prompt + output + thoughts,
        ...metadata,
      },
    },
    ...others,
  }
}

export function converse(model: string, input: number, output: number, tier?: string): PricedCall {
  return {
    upstream: 'bedrock',
    path: '/v1/chat/completions',
    model,
    body: { model, messages: HI },
    answer: {
      output: { message: { role: 'assistant', content: [{ text: 'said' }] } },
      stopReason: 'end_turn',
      usage: { inputTokens: input, outputTokens: output, totalTokens: input + output },
      metrics: { latencyMs: 1 },
      ...(tier !== undefined && { serviceTier: { type: tier } }),
    },
  }
}

export const modality = (kind: string, tokens: number): object => ({ modality: kind, tokenCount: tokens })
