import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { RequestParameters } from '../../telemetry/telemetry.ts'
import type { ParsedRequest } from '../../call/request-stages.ts'

const NAME = /^[\w.:-]{1,256}$/
const LEVEL = /^[A-Za-z_]{1,32}$/

/** Each function checks whether a value has the type that its parameter requires. */
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
const isInteger = (value: unknown): value is number => Number.isSafeInteger(value)
const isName = (value: unknown): value is string => typeof value === 'string' && NAME.test(value)
const isLevel = (value: unknown): value is string => typeof value === 'string' && LEVEL.test(value)

/** How a request parameter is read and checked: a row of `PARAMETERS`. */
interface Parameter {
  readonly attribute: string
  /** Paths at which the dialects have the parameter. A path means the same in every dialect that has it. */
  readonly paths: readonly (readonly string[])[]
  readonly isValid: (value: unknown) => value is string | number
}

const inConfig = (...names: readonly string[]): (readonly string[])[] =>
  names.flatMap((name) => [
    ['generationConfig', name],
    ['generation_config', name],
  ])

/**
 * Request parameters that become attributes of a span. Stop sequences are left out, because a client may have
 * put private text in them. `docs/telemetry.md: Attributes of a call`.
 */
const PARAMETERS: readonly Parameter[] = [
  { attribute: 'temperature', paths: [['temperature'], ...inConfig('temperature')], isValid: isNumber },
  { attribute: 'top_p', paths: [['top_p'], ...inConfig('topP', 'top_p')], isValid: isNumber },
  { attribute: 'top_k', paths: [['top_k'], ...inConfig('topK', 'top_k')], isValid: isInteger },
  { attribute: 'seed', paths: [['seed'], ...inConfig('seed')], isValid: isInteger },
  {
    attribute: 'frequency_penalty',
    paths: [['frequency_penalty'], ...inConfig('frequencyPenalty', 'frequency_penalty')],
    isValid: isNumber,
  },
  {
    attribute: 'presence_penalty',
    paths: [['presence_penalty'], ...inConfig('presencePenalty', 'presence_penalty')],
    isValid: isNumber,
  },
  {
    attribute: 'choice.count',
    paths: [['n'], ...inConfig('candidateCount', 'candidate_count')],
    isValid: (value): value is number => isInteger(value) && value !== 1,
  },
  {
    attribute: 'reasoning.level',
    paths: [
      ['reasoning_effort'],
      ['reasoning', 'effort'],
      ['output_config', 'effort'],
      ['generationConfig', 'thinkingConfig', 'thinkingLevel'],
    ],
    isValid: isLevel,
  },
  { attribute: 'previous_response.id', paths: [['previous_response_id']], isValid: isName },
]

/**
 * The `gen_ai.request.*` attributes of a request. They are read from an existing scan, so that nothing is
 * parsed again.
 */
export function requestParameters({
  maxTokens,
  json,
}: Pick<ParsedRequest, 'maxTokens' | 'json'>): RequestParameters {
  const found: Record<string, string | number> = {}
  if (maxTokens !== undefined) found['gen_ai.request.max_tokens'] = maxTokens
  if (!json?.dialect.conversation) return found
  const { scan } = json
  for (const { attribute, paths, isValid } of PARAMETERS)
    for (const path of paths) {
      const value = valueAt(scan, path)
      if (!isValid(value)) continue
      found[`gen_ai.request.${attribute}`] = value
      break
    }
  return found
}

function valueAt(scan: ScannedObject, path: readonly string[]): unknown {
  const [first = '', ...rest] = path
  let node = scan.span(first)?.node
  for (const name of rest) {
    if (node === undefined || scan.kindOf(node) !== 'object') return undefined
    node = scan.memberOf(node, name)
  }
  return node === undefined || scan.isContainer(node) ? undefined : scan.parse(node)
}
