import { type ChannelEdits, isEdited, type Override } from '../domain/records/channel.ts'
import { parseRecord } from '@sluice/wire/json/record'
import type { ChannelPlan } from './request-stages.ts'

/** Upper bounds of a request for one channel, after the channel's own changes. */
export interface EditedBounds {
  /** Tokens that the changes may add to the prompt. */
  readonly prompt: number
  /** Maximum output tokens; undefined if none are stated. */
  readonly output: number | undefined
  /** Whether a maximum is sent to the channel and the channel is expected to respect it. */
  readonly named: boolean
}

/** Tokens that an upstream adds for one more message. */
const MESSAGE_TOKENS = 16
/** Members with the maximum in chat requests; an upstream may accept either. */
const OF_CHAT = ['max_tokens', 'max_completion_tokens'] as const

/**
 * Upper bounds of a request that its channel changes. The operator's instructions and values are charged like
 * the client's own.
 */
export function editedBounds({ channel, outputMaximum: stated, choices }: ChannelPlan): EditedBounds {
  if (!isEdited(channel)) return { prompt: 0, output: times(stated, choices), named: stated !== undefined }
  const { protocol: protocols } = channel
  const isChatAlone = protocols.length === 1 && protocols[0] === 'chat'
  const maxima = [
    ...(protocols.includes('chat') ? chatMaxima(channel.override, stated) : []),
    ...(isChatAlone ? [] : maximaOf(channel.override, stated)),
  ]
  const candidates = configured(channel.override, 'candidateCount') ?? 1
  const known = maxima.filter((one) => one !== undefined)
  return {
    prompt: addedTokens(channel),
    output: known.length === 0 ? undefined : Math.max(...known) * Math.max(choices, candidates),
    named: known.length === maxima.length,
  }
}

// Each of the two members may come from the client and may be changed separately.
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

// A value that is not a number counts as no maximum.
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

// A token has at least one byte.
function addedTokens({ system_prompt, override: { set, default: usual } }: ChannelEdits): number {
  const texts = [...set.values(), ...usual.values()]
  const prompt = system_prompt === '' ? 0 : Buffer.byteLength(system_prompt) + MESSAGE_TOKENS
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), prompt)
}

function times(tokens: number | undefined, choices: number): number | undefined {
  return tokens === undefined ? undefined : tokens * choices
}
