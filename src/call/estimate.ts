import { type ProtocolName } from '@sluice/wire/protocols'
import { parseRecord } from '@sluice/wire/json/record'
import type { CacheWriteLifetime } from '@sluice/wire/reported-usage'
import type { DeclaredCapabilities } from '@sluice/wire/model-capabilities'
import { EXPECTED_BYTES_PER_TOKEN } from '@sluice/wire/prompt-tokens'
import { type SentRequest, hiddenThinking } from '@sluice/wire/hidden-thinking'
import { maxCharge } from '../domain/charge.ts'
import { type Endpoint, ENDPOINTS } from '../domain/endpoints.ts'
import type { ChargeRate } from '../domain/price.ts'
import { ratesToHold } from '../domain/service-rate.ts'
import {
  type Channel,
  type RequestBodyEdits,
  editsRequestBodies,
  type Override,
} from '../domain/records/channel.ts'
import type { Model } from '../domain/records/model.ts'
import type { Settings } from '../domain/settings.ts'
import { ALL_CACHE_LIFETIMES, cacheLifetimesAtChannel } from './cache-lifetimes.ts'
import { contextOf, tokensOfReadings, toolsToHold } from './held-tools.ts'
import type { ChannelPlan, ParsedRequest, Estimate, OutputBudget } from './request-stages.ts'
import { possibleTiersAndRegion } from './service-tier-rates.ts'

export const FREE_STREAM_ESTIMATE: Estimate = {
  amount: 0,
  budget: { tokens: Number.MAX_SAFE_INTEGER, maximum: undefined, slice: 1, readings: 0, quotaOf: () => 0 },
  heldTokens: Number.MAX_SAFE_INTEGER,
  promptTokens: 0,
  unknownTokens: 0,
}

/**
 * Estimates the size and the maximum cost of a call, for the requests that the eligible channels would receive.
 * `promptBound`: upper bound on the tokens of the prompt, known from an earlier call.
 */
export function estimate(
  endpoint: Endpoint,
  request: ParsedRequest,
  channels: readonly ChannelPlan[],
  rate: ChargeRate,
  settings: Settings,
  model: Pick<Model, 'name' | 'contextTokens' | 'isContextKnown'> & DeclaredCapabilities,
  promptBound = Number.POSITIVE_INFINITY,
): Estimate {
  const { hold_tokens: holdTokens } = settings.options
  const { isEdited: isConversation } = ENDPOINTS[endpoint]
  const isWatched = isConversation && request.stream && !request.responses?.isBackground
  const tools = toolsToHold(channels, isWatched, rate, settings)
  const steps = isWatched ? stepsOf(request, model, settings.options) : undefined
  const { tokens, maximum, addedPrompt } = callBounds(channels, boundsOf(endpoint), holdTokens, steps)
  const context = request.responses?.contextTokens ?? 0
  // Parts of the prompt that the request only refers to fit into the model's context together, however many
  // there are.
  const unknown = request.namesPrompt ? model.contextTokens : 0
  const rates = ratesHeld(channels, endpoint, request, rate, settings)
  const lifetimes = lifetimesOf(request, channels)
  const { tokens: modelContext, isCertain } = contextOf(channels, model, settings)
  const stated = Math.min(request.promptBound + addedPrompt, promptBound) + context + unknown
  const isBounded = isCertain && fitsContext(rate, modelContext)
  const ofTurns = isConversation ? promptsOf(endpoint, channels) * modelContext : Number.POSITIVE_INFINITY
  const prompt = isBounded ? Math.min(stated - tokensBeyond(modelContext, request), ofTurns) : stated
  const promptWith = (output: number, readings: number): number =>
    prompt + tokensOfReadings(readings, tools.resultTokens, Math.max(modelContext, prompt), prompt + output)
  const max = (output: number, readings: number): number => {
    const most = {
      ...request.measured?.bounds,
      prompt: promptWith(output, readings),
      output,
      tools: tools.priced,
      lifetimes,
    }
    return rates.length === 1
      ? maxCharge(rates[0] ?? rate, most)
      : Math.max(...rates.map((one) => maxCharge(one, most)))
  }
  const { readings } = tools
  return {
    amount: max(tokens, readings),
    budget: { tokens, maximum, slice: holdTokens, readings, quotaOf: max },
    heldTokens: promptWith(tokens, readings) + tokens,
    promptTokens: Math.ceil((request.promptBound + addedPrompt) / EXPECTED_BYTES_PER_TOKEN) + context,
    unknownTokens: unknown,
  }
}

/**
 * Whether the context length of a model agrees with its price. A price for longer prompts shows that the model
 * takes them.
 */
function fitsContext({ price: { tiers } }: ChargeRate, context: number): boolean {
  return (tiers.at(-1)?.above ?? 0) < context
}

/** Tokens of the inputs of a request that no model with this context reads. */
function tokensBeyond(context: number, { inputBounds = [] }: ParsedRequest): number {
  return inputBounds.reduce((sum, bound) => sum + Math.max(0, bound - context), 0)
}

/** Maximum number of prompts in a request, each of which has its own context. */
function promptsOf(endpoint: Endpoint, channels: readonly ChannelPlan[]): number {
  return endpoint === 'completions' ? Math.max(1, ...channels.map(({ choices }) => choices)) : 1
}

/** Cache lifetimes with which any of the channels may write the prompt to a cache. */
function lifetimesOf(
  { responses, namesPrompt, requested }: ParsedRequest,
  channels: readonly ChannelPlan[],
): readonly CacheWriteLifetime[] {
  // A part of the prompt that is stored elsewhere may contain cache directives.
  if (responses?.composed || (responses?.contextTokens ?? 0) > 0 || namesPrompt) return ALL_CACHE_LIFETIMES
  const all = channels.map((plan) => cacheLifetimesAtChannel(plan, requested?.lifetimes))
  const [first = ALL_CACHE_LIFETIMES] = all
  return all.every((one) => one === first) ? first : [...new Set(all.flat())]
}

/**
 * The maximum of output tokens that is sent to a channel, for all choices together; undefined if no maximum
 * is sent.
 */
export function outputMaximum(endpoint: Endpoint, plan: ChannelPlan): number | undefined {
  return boundsOf(endpoint)(plan).output
}

/** The rates (prices with a group's ratio) at which any of the channels may charge a request. */
function ratesHeld(
  channels: readonly ChannelPlan[],
  endpoint: Endpoint,
  request: ParsedRequest,
  rate: ChargeRate,
  settings: Settings,
): readonly ChargeRate[] {
  if (rate.free) return [rate]
  const ratesAt = (plan: ChannelPlan): readonly ChargeRate[] => {
    const { channel } = plan
    const model = plan.tools?.model ?? channel.model_mapping.get(request.model) ?? request.model
    const service = possibleTiersAndRegion(plan, endpoint, request.requested, settings.options.pass_through)
    return ratesToHold(rate, channel, model, service)
  }
  return channels.length === 1 ? ratesAt(channels[0]!) : [...new Set(channels.flatMap(ratesAt))]
}

function boundsOf(endpoint: Endpoint): (plan: ChannelPlan) => EditedBounds {
  return ENDPOINTS[endpoint].isEdited ? editedBounds : uneditedBounds
}

/** Returns the output tokens for which a stream reserves quota at first, if this channel serves it. */
type FirstStep = (plan: ChannelPlan, bounds: EditedBounds) => number

/**
 * Returns for how much output a stream reserves quota at first. More is then reserved in steps, because the
 * output is seen as it is generated. The first step includes thinking that the stream may not show.
 */
function stepsOf(
  { model: name }: ParsedRequest,
  model: DeclaredCapabilities,
  options: Pick<Settings['options'], 'hold_tokens' | 'pass_through'>,
): FirstStep {
  return (plan, { output, named }) => {
    const step = options.hold_tokens * plan.choices
    const maximum = named ? (output ?? 0) : Number.POSITIVE_INFINITY
    if (maximum <= step) return maximum
    const unseen = plan.sent && hiddenThinking(editedRequest(plan.sent, plan.channel, options), name, model)
    if (!unseen) return step
    if (unseen.budget !== undefined) return Math.min(maximum, step + unseen.budget * plan.choices)
    return named ? maximum : Math.max(step, output ?? 0)
  }
}

function editedRequest(
  sent: SentRequest,
  {
    override: { set, default: usual, remove },
    pass_through: isOpen,
  }: RequestBodyEdits & Pick<Channel, 'pass_through'>,
  options: Pick<Settings['options'], 'pass_through'>,
): SentRequest {
  const filtered = isOpen || options.pass_through ? undefined : sent.filtered
  return {
    ...sent,
    value(name) {
      const text = set.get(name)
      if (text !== undefined) return JSON.parse(text) as unknown
      if (remove.includes(name)) return undefined
      const own = name === filtered ? undefined : sent.value(name)
      return own === undefined && usual.has(name) ? JSON.parse(usual.get(name) ?? '') : own
    },
    names: () => new Set([...sent.names(), ...set.keys(), ...usual.keys()]),
    isObject: (name) => set.has(name) || usual.has(name) || sent.isObject(name),
  }
}

/**
 * The output for which quota must be reserved at first, whichever channel answers, and the maximum of output
 * tokens that is sent to every channel.
 */
function callBounds(
  channels: readonly ChannelPlan[],
  boundsAt: (plan: ChannelPlan) => EditedBounds,
  holdTokens: number,
  firstStep: FirstStep | undefined,
): Pick<OutputBudget, 'tokens' | 'maximum'> & { readonly addedPrompt: number } {
  let tokens = 0
  let maximum = 0
  let named = true
  let addedPrompt = 0
  for (const plan of channels) {
    const bound = boundsAt(plan)
    const unnamed = bound.named ? 0 : holdTokens * plan.choices
    named &&= bound.named
    maximum = Math.max(maximum, bound.output ?? 0)
    tokens = Math.max(tokens, firstStep ? firstStep(plan, bound) : Math.max(bound.output ?? 0, unnamed))
    addedPrompt = Math.max(addedPrompt, bound.prompt)
  }
  return { tokens, maximum: named ? maximum : undefined, addedPrompt }
}

function uneditedBounds({ outputMaximum, choices }: ChannelPlan): EditedBounds {
  const named = outputMaximum !== undefined
  return { prompt: 0, output: named ? outputMaximum * choices : undefined, named }
}

/** Upper bounds of a request for one channel, after the channel's own changes. */
export interface EditedBounds {
  /** Tokens that the channel's changes may add to the prompt. */
  readonly prompt: number
  /** Maximum output tokens; undefined if the request states none. */
  readonly output: number | undefined
  /** Whether a maximum of output tokens is sent to the channel and the channel is expected to respect it. */
  readonly named: boolean
}

/** Tokens assumed for a message in addition to its text, such as for a channel's system prompt. */
const MESSAGE_TOKENS = 16
/** Reads the possible maxima of output tokens of a request after a channel's override. */
type MaximaReader = (override: Override, stated: number | undefined) => (number | undefined)[]

/** Readers of the maxima of output tokens, by protocol. */
const MAXIMA: Readonly<Record<ProtocolName, MaximaReader>> = {
  chat: chatMaxima,
  messages: maximaOf,
  responses: maximaOf,
  gemini: maximaOf,
  converse: maximaOf,
  rerank: maximaOf,
}

/** Members of chat requests with the maximum of output tokens; an upstream may accept either. */
const OF_CHAT = ['max_tokens', 'max_completion_tokens'] as const

/**
 * Upper bounds on the tokens of a request after the changes that its channel makes. What the operator adds is
 * charged like the client's own content.
 */
export function editedBounds({ channel, outputMaximum: stated, choices }: ChannelPlan): EditedBounds {
  if (!editsRequestBodies(channel))
    return { prompt: 0, output: times(stated, choices), named: stated !== undefined }
  const readers = new Set(channel.protocol.map((protocol) => MAXIMA[protocol]))
  const maxima = [...readers].flatMap((read) => read(channel.override, stated))
  const candidates = configured(channel.override, 'candidateCount') ?? 1
  const known = maxima.filter((one) => one !== undefined)
  return {
    prompt: addedTokens(channel),
    output: known.length === 0 ? undefined : Math.max(...known) * Math.max(choices, candidates),
    named: known.length === maxima.length,
  }
}

// Each of the two members for the maximum may come from the client, and the channel may change each
// separately.
function chatMaxima(override: Override, stated: number | undefined): (number | undefined)[] {
  const set = OF_CHAT.flatMap((name) => changed(override, name) ?? [])
  const isRemoved = OF_CHAT.some((name) => isWithout(override, name))
  return [
    ...(stated === undefined && set.length > 0 ? [] : [stated]),
    ...set,
    ...(isRemoved ? [undefined] : []),
  ]
}

function maximaOf(override: Override, stated: number | undefined): (number | undefined)[] {
  for (const name of ['max_tokens', 'max_output_tokens', 'generationConfig'] as const) {
    if (isWithout(override, name)) return [undefined]
    const inConfig = name === 'generationConfig'
    const text = override.set.get(name)
    if (text !== undefined) return [inConfig ? configured(override, 'maxOutputTokens') : numberIn(text)]
    const usual = override.default.get(name)
    if (usual === undefined) continue
    const added = inConfig ? configured(override, 'maxOutputTokens') : numberIn(usual)
    return [stated ?? added]
  }
  return [stated]
}

function changed({ set, default: usual }: Override, name: string): number | undefined {
  const text = set.get(name) ?? usual.get(name)
  return text === undefined ? undefined : numberIn(text)
}

// A value that is not a number is treated as if there were no maximum.
function isWithout({ set, remove }: Override, name: string): boolean {
  const text = set.get(name)
  if (text === undefined) return remove.includes(name)
  return name !== 'generationConfig' && numberIn(text) === undefined
}

function configured({ set, default: usual }: Override, name: string): number | undefined {
  const value = parseRecord(set.get('generationConfig') ?? usual.get('generationConfig') ?? '')?.[name]
  return typeof value === 'number' ? value : undefined
}

function numberIn(text: string): number | undefined {
  const value: unknown = JSON.parse(text)
  return typeof value === 'number' && value >= 0 ? value : undefined
}

// Counts every byte as a token, which is the upper bound, because a token has at least one byte.
function addedTokens({ system_prompt, override: { set, default: usual } }: RequestBodyEdits): number {
  const texts = [...set.values(), ...usual.values()]
  const prompt = system_prompt === '' ? 0 : Buffer.byteLength(system_prompt) + MESSAGE_TOKENS
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), prompt)
}

function times(tokens: number | undefined, choices: number): number | undefined {
  return tokens === undefined ? undefined : tokens * choices
}
