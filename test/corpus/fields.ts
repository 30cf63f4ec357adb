import type { PairedProtocol } from '../samples/paired-protocol.ts'
import { type Case, requestText } from './case.ts'
import { type Kind, kindOf, VALUES } from './values.ts'

type Fields = Readonly<Record<string, readonly Kind[]>>

/** Kinds of values that each field accepts; docs/api.md: Chat completions and Messages. */
const FIELDS: Record<PairedProtocol, Fields> = {
  chat: {
    model: ['string'],
    messages: ['array'],
    max_tokens: ['number'],
    max_completion_tokens: ['number'],
    stream: ['boolean'],
    stream_options: ['object'],
    n: ['number'],
    stop: ['string', 'array'],
    temperature: ['number'],
    top_p: ['number'],
    top_k: ['number'],
    seed: ['number'],
    presence_penalty: ['number'],
    frequency_penalty: ['number'],
    logit_bias: ['object'],
    logprobs: ['boolean'],
    top_logprobs: ['number'],
    tools: ['array'],
    tool_choice: ['string', 'object'],
    parallel_tool_calls: ['boolean'],
    functions: ['array'],
    function_call: ['string', 'object'],
    response_format: ['object'],
    prediction: ['object'],
    audio: ['object'],
    web_search_options: ['object'],
    reasoning_effort: ['string'],
    verbosity: ['string'],
    modalities: ['array'],
    prompt_cache_key: ['string'],
    prompt_cache_retention: ['string'],
    store: ['boolean'],
    metadata: ['object'],
    user: ['string'],
    service_tier: ['string'],
    safety_identifier: ['string'],
  },
  messages: {
    model: ['string'],
    max_tokens: ['number'],
    messages: ['array'],
    system: ['string', 'array'],
    stream: ['boolean'],
    temperature: ['number'],
    top_p: ['number'],
    top_k: ['number'],
    stop_sequences: ['array'],
    tools: ['array'],
    tool_choice: ['object'],
    thinking: ['object'],
    metadata: ['object'],
    cache_control: ['object'],
    service_tier: ['string'],
    inference_geo: ['string'],
    speed: ['string'],
  },
}

const REQUIRED: Record<PairedProtocol, readonly string[]> = {
  chat: ['model', 'messages'],
  messages: ['model', 'max_tokens', 'messages'],
}

/** Every field with values of every kind. */
export function fieldKinds(): Case[] {
  return (['chat', 'messages'] as const).flatMap((protocol) =>
    Object.entries(FIELDS[protocol]).flatMap(([field, kinds]) =>
      VALUES.map((value): Case => {
        const kind = kindOf(value)
        const isRequired = REQUIRED[protocol].includes(field)
        const ofNull = isRequired ? 'refused' : 'forwarded'
        const ofOther = kinds.includes(kind) ? 'either' : 'refused'
        return {
          name: `${field} = ${value}`,
          protocols: [protocol],
          outcome: kind === 'null' ? ofNull : ofOther,
          // A string as the model's name is the name of another model.
          ...(field === 'model' && { statuses: [400, 503] }),
          body: (model) => requestText(protocol, model, [field, value]),
        }
      }),
    ),
  )
}

interface Range {
  readonly field: string
  readonly from: number
  readonly to: number
  readonly whole: boolean
  /** Values inside the range are certainly forwarded. */
  readonly certain: boolean
}

const range = (field: string, from: number, to: number, whole = false, certain = true): Range => ({
  field,
  from,
  to,
  whole,
  certain,
})

/** docs/api.md: the ranges of numbers. Where the contract states no bound, the outcome is open. */
const RANGES: Record<PairedProtocol, readonly Range[]> = {
  chat: [
    range('n', 1, 128, true),
    range('temperature', 0, 2),
    range('top_p', 0, 1),
    range('presence_penalty', -2, 2),
    range('frequency_penalty', -2, 2),
    range('seed', Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, true, false),
    range('top_k', Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, true, false),
    range('max_tokens', 0, Number.POSITIVE_INFINITY, true, false),
    range('max_completion_tokens', 0, Number.POSITIVE_INFINITY, true, false),
  ],
  messages: [
    range('temperature', 0, 1),
    range('max_tokens', 0, Number.POSITIVE_INFINITY, true, false),
    range('top_k', Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, true, false),
  ],
}

const NUMBERS = [
  '-1e400',
  '-9223372036854775808',
  '-3',
  '-2.0000001',
  '-2',
  '-1',
  '-0.5',
  '-0',
  '0',
  '0.0',
  '1e-400',
  '1e-9',
  '0.5',
  '0.9999999999999999999',
  '1',
  '1.0',
  '10e-1',
  '1.0000001',
  '1.5',
  '2',
  '2.0000001',
  '3',
  '1e2',
  '128',
  '129',
  '1e3',
  '2147483648',
  '9007199254740991',
  '9007199254740993',
  '18446744073709551616',
  '1e21',
  '1e308',
  '1e400',
] as const

/** Numbers at the limits of fields and of number formats. */
export function numbers(): Case[] {
  return (['chat', 'messages'] as const).flatMap((protocol) =>
    RANGES[protocol].flatMap((rule) =>
      NUMBERS.map(
        (text): Case => ({
          name: `${rule.field} = ${text}`,
          protocols: [protocol],
          outcome: judged(rule, Number(text)),
          body: (model) => requestText(protocol, model, [rule.field, text]),
        }),
      ),
    ),
  )
}

function judged({ from, to, whole, certain }: Range, value: number): Case['outcome'] {
  if (value < from || value > to || (whole && !Number.isInteger(value))) return 'refused'
  return certain ? 'forwarded' : 'either'
}
