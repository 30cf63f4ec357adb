import { asRecord } from './json/record.ts'
import { capabilitiesOf, type DeclaredCapabilities, geminiVersion, isSince } from './model-capabilities.ts'
import type { ProtocolName } from './protocols.ts'
import type { Fields } from './field.ts'
import { requestedThinking, type ThinkingSetting as Setting } from './thinking-settings.ts'
import { DYNAMIC_BUDGET } from './thinking.ts'
import { thinkingSwitchOf } from './chat/thinking.ts'

/** A request as it is sent to the upstream, for finding out whether the model thinks. */
export interface SentRequest {
  /** The protocol of the upstream, in which the request is written. */
  readonly dialect: ProtocolName
  /** The upstream's name for the model. */
  readonly model: string
  /** Returns a parsed top-level member of the body; undefined if it is absent. */
  value(name: string): unknown
  /** Names of the top-level members of the body. */
  names(): Iterable<string>
  /** Whether a top-level member may be an object, without parsing it. */
  isObject(name: string): boolean
  /** The top-level member that is sent in pass-through mode alone; absent if there is none. */
  readonly filtered?: string
}

/** Thinking that the upstream charges as output but may leave out of the stream. */
export interface HiddenThinking {
  /** Maximum number of thinking tokens; undefined if the request does not limit them. */
  readonly budget: number | undefined
}

/** A model that thinks, but whose streams do not contain all of its thinking. */
interface Thinker {
  /** Whether the model thinks if the request has no thinking settings. */
  readonly byDefault: boolean
  /** Whether a request can switch the model's thinking off. */
  readonly canStop: boolean
}

/** A model of which nothing is known. */
const UNKNOWN = 'unknown'

/**
 * Thinking that may be missing from the stream of a request; undefined if the stream contains all output. A
 * model of which nothing is known may hide it if the request switches thinking on. `docs/ledger.md: Holds`.
 */
export function hiddenThinking(
  sent: SentRequest,
  requestedName: string,
  stated: DeclaredCapabilities = {},
): HiddenThinking | undefined {
  const thinker = thinkerOf(sent.model, requestedName, stated)
  if (!thinker) return undefined
  if (thinker === UNKNOWN) return requestedThinking(sent)
  const settings = SETTINGS[sent.dialect]((name) => sent.value(name)).filter((one) => one !== undefined)
  const on = settings.filter((one) => one.kind === 'on')
  const isOff = on.length === 0 && settings.length > 0
  if (isOff ? thinker.canStop : on.length === 0 && !thinker.byDefault) return undefined
  const budgets = on.flatMap(({ budget }) => budget ?? [])
  return { budget: budgets.length > 0 ? Math.max(...budgets) : undefined }
}

/** Matches models whose providers stream all thinking. */
const THINKS_ALOUD = /(?:^|[^a-z])(?:deepseek|qwen|qwq|kimi|glm|minimax)/i
const CLAUDE_THINKING = /[-:]thinking\b/i
const LATEST_GEMINI = /(?:^|[^a-z])gemini-(?:pro|flash|flash-lite)-latest/i
const CODEX_MINI = /(?:^|[^a-z])codex-mini/i
const CLAUDE = /claude|(?:^|[^a-z])(?:opus|sonnet|haiku)-\d/i

function thinkerOf(
  model: string,
  requestedName: string,
  stated: DeclaredCapabilities,
): Thinker | typeof UNKNOWN | undefined {
  if (stated.thinking === 'none') return undefined
  for (const name of new Set([model, requestedName])) {
    if (THINKS_ALOUD.test(name)) return undefined
    const known = capabilitiesOf(name, name)
    const { isOpenAi, maximumField, efforts, gemini, alwaysThinks } = known
    if (CODEX_MINI.test(name)) return { byDefault: true, canStop: false }
    // OpenAI introduced `max_completion_tokens` with its reasoning models, and only these require it.
    if (isOpenAi)
      return maximumField === 'max_completion_tokens'
        ? { byDefault: true, canStop: efforts?.includes('none') ?? false }
        : undefined
    if (CLAUDE.test(name))
      return known.thinking === 'none'
        ? undefined
        : { byDefault: alwaysThinks || CLAUDE_THINKING.test(name), canStop: !alwaysThinks }
    const version = geminiVersion(name)
    if (LATEST_GEMINI.test(name) || (version && isSince(version, 2, 5)))
      return { byDefault: true, canStop: gemini.canStopThinking }
    if (known.isKnown) return undefined
  }
  return UNKNOWN
}

type Values = (name: string) => unknown

/** Reads the thinking settings from the fields of a request, by protocol. */
const SETTINGS: Readonly<Record<ProtocolName, (value: Values) => (Setting | undefined)[]>> = {
  chat: (value) => [
    ofEffort(value('reasoning_effort')),
    ofReasoning(value('reasoning')),
    ofBlocks(value('thinking')),
    ofSwitch(value),
    ofGoogle(asRecord(value('extra_body'))?.['google']),
  ],
  messages: (value) => [ofBlocks(value('thinking'))],
  responses: (value) => [ofReasoning(value('reasoning'))],
  gemini: (value) => [ofConfig(value('generationConfig')), ofConfig(value('generation_config'))],
  converse(value) {
    const fields = asRecord(value('additionalModelRequestFields'))
    return [ofBlocks(fields?.['thinking']), ofBlocks(fields?.['reasoning_config'])]
  },
  rerank: () => [],
}

function ofEffort(effort: unknown): Setting | undefined {
  if (typeof effort !== 'string') return undefined
  return effort.toLowerCase() === 'none' ? { kind: 'off' } : { kind: 'on' }
}

/** Reads `reasoning` of responses requests. Routers also accept it in chat requests. */
function ofReasoning(value: unknown): Setting | undefined {
  const reasoning = asRecord(value)
  if (!reasoning) return undefined
  const { effort, max_tokens: tokens, enabled } = reasoning
  if (enabled === false) return { kind: 'off' }
  if (isCount(tokens)) return ofBudget(tokens)
  return ofEffort(effort) ?? (enabled === true ? { kind: 'on' } : undefined)
}

/** Reads the switch of open models. It never counts as off and bounds nothing, because servers of other models ignore it. */
function ofSwitch(value: Values): Setting | undefined {
  return thinkingSwitchOf(value).enabled === true ? { kind: 'on' } : undefined
}

/** Reads `thinking` of messages requests. */
function ofBlocks(value: unknown): Setting | undefined {
  const thinking = asRecord(value)
  if (!thinking) return undefined
  if (thinking['type'] === 'disabled') return { kind: 'off' }
  const budget = thinking['budget_tokens']
  return isCount(budget) ? { kind: 'on', budget } : { kind: 'on' }
}

function ofConfig(value: unknown): Setting | undefined {
  const config = asRecord(value)
  return ofGeminiThinking(either(config, 'thinkingConfig', 'thinking_config'))
}

function ofGoogle(value: unknown): Setting | undefined {
  return ofGeminiThinking(either(asRecord(value), 'thinkingConfig', 'thinking_config'))
}

function ofGeminiThinking(value: unknown): Setting | undefined {
  const config = asRecord(value)
  const budget = either(config, 'thinkingBudget', 'thinking_budget')
  if (budget === DYNAMIC_BUDGET) return { kind: 'on' }
  if (isCount(budget)) return ofBudget(budget)
  return either(config, 'thinkingLevel', 'thinking_level') === undefined ? undefined : { kind: 'on' }
}

function ofBudget(budget: number): Setting {
  return budget === 0 ? { kind: 'off' } : { kind: 'on', budget }
}

function either(fields: Fields | undefined, name: string, other: string): unknown {
  return fields?.[name] ?? fields?.[other] ?? undefined
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
