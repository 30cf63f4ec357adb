import { refuseChoices } from '../choices.ts'
import type { Dropped, UpstreamModel } from '../codec.ts'
import type { Conversation } from '../conversation.ts'
import { arrayOf, objectOf } from '../json/json-text.ts'
import { dropLogprobs } from '../logprobs-asked.ts'
import { dropSeedAndPenalties } from '../seed-and-penalties.ts'
import { BlockWriter } from './encode-blocks.ts'
import { encodeTools } from './encode-tools.ts'
import { encodeTurns } from './encode-turns.ts'
import { encodeInference } from './inference.ts'
import { encodeOutputFormat, withSupportedFormat } from './output-format.ts'

/** Tiers that upstreams know. */
const TIERS: ReadonlySet<unknown> = new Set(['default', 'flex', 'priority'])

/**
 * Encodes a request. The model and whether to stream are not part of it; they are in the path. The order of
 * fields is fixed, so that equal conversations give equal bytes, which hit the upstream's cache. Throws
 * `invalid_request` for anything that cannot be expressed and must not be dropped.
 */
export function encodeRequest(
  requested: Conversation,
  { capabilities }: UpstreamModel,
  dropped: Dropped,
): Buffer {
  dropSeedAndPenalties(requested, dropped)
  dropLogprobs(requested, dropped)
  refuseChoices(requested)
  const { converse } = capabilities
  const conversation = withSystem(withSupportedFormat(requested, capabilities, dropped), converse.takesSystem)
  const writer = new BlockWriter(converse, dropped)
  const system = conversation.system.flatMap((part) => writer.writeText(part))
  const { outputFormat } = conversation
  const body = objectOf([
    ['system', system.length > 0 ? arrayOf(system) : undefined],
    ['messages', arrayOf(encodeTurns(conversation.turns, converse, dropped))],
    ['toolConfig', encodeTools(conversation, converse, dropped)],
    ...encodeInference(conversation, capabilities, dropped),
    ['outputConfig', outputFormat && encodeOutputFormat(outputFormat)],
    ['serviceTier', tierOf(conversation, dropped)],
  ])
  return Buffer.from(body)
}

/**
 * Moves the system texts before the user's first text, for models that do not accept a system instruction.
 */
function withSystem<Given extends Conversation>(conversation: Given, takesSystem: boolean): Given {
  const { system, turns } = conversation
  if (takesSystem || system.length === 0) return conversation
  const [first, ...rest] = turns
  const own = first?.role === 'user' ? first.parts : []
  const others = first?.role === 'user' ? rest : turns
  return { ...conversation, system: [], turns: [{ role: 'user', parts: [...system, ...own] }, ...others] }
}

/** The tier as JSON text. Other fields that some dialects share are reported as dropped. */
function tierOf({ shared, endUser, isStandardTier }: Conversation, dropped: Dropped): string | undefined {
  if (endUser?.field === 'metadata') dropped.add('metadata')
  let tier = isStandardTier ? '{"type":"default"}' : undefined
  for (const [name, value] of shared ?? []) {
    if (name === 'service_tier' && TIERS.has(JSON.parse(value))) tier = `{"type":${value}}`
    else dropped.add(name)
  }
  return tier
}
