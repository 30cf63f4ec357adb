import { choicesAsked } from '../../choices.ts'
import type { Dropped } from '../../codec.ts'
import type { Conversation, TextPart } from '../../conversation.ts'
import { checkMembers, refuse } from '../../field-check.ts'
import { type Fields, fieldsAt, textAt } from '../../field.ts'
import type { ScannedObject } from '../../json/scanned-object.ts'
import { logprobsAsked } from '../../logprobs-asked.ts'
import { decodeThinkingConfig } from '../../thinking-config.ts'
import { sharedField } from '../../shared-fields.ts'
import { checkConfigRules, CONVERTED_CHECKS, CONVERTED_RULES } from '../converted-checks.ts'
import { ContentsReader } from '../decode-contents.ts'
import { decodeTools } from '../decode-tools.ts'
import { drop, nameDroppedFields } from '../dropped-fields.ts'
import { modelOf } from '../model-name.ts'
import { decodeOutputFormat } from '../output-format.ts'
import { either, topValue } from '../spelling.ts'

/**
 * Decodes a checked request. The model and whether to stream come from the request's path, as members `model`
 * and `stream`. Fields that a conversation cannot express are reported in `dropped`. Throws `invalid_request`
 * with the path of an unreadable value, and for content stored at the provider.
 */
export function decodeRequest(scan: ScannedObject, dropped: Dropped): Conversation {
  checkMembers(scan, [], CONVERTED_CHECKS)
  if (topValue(scan, 'cachedContent') !== undefined)
    refuse('cachedContent', `all of the conversation in 'contents'`, 'content that only its provider has')
  nameDroppedFields(scan, dropped)
  const given = topValue(scan, 'generationConfig')
  const config = given === undefined ? {} : fieldsAt(given, 'generationConfig')
  checkConfigRules(config, 'generationConfig', CONVERTED_RULES)
  const number = (name: string): number | undefined => either(config, name) as number | undefined
  const model = topValue(scan, 'model')
  const tier = topValue(scan, 'serviceTier')
  const shared = sharedField('service_tier', typeof tier === 'string' ? tierOf(tier) : undefined)
  return {
    model: modelOf(model === undefined ? '' : textAt(model, 'model')),
    stream: scan.value('stream') === true,
    system: decodeSystem(topValue(scan, 'systemInstruction'), dropped),
    turns: new ContentsReader(scan, dropped).read(),
    ...decodeTools(scan, dropped),
    maxTokens: number('maxOutputTokens'),
    temperature: number('temperature'),
    topP: number('topP'),
    topK: number('topK'),
    seed: number('seed'),
    presencePenalty: number('presencePenalty'),
    frequencyPenalty: number('frequencyPenalty'),
    stop: ((either(config, 'stopSequences') ?? []) as readonly string[]).filter((text) => text !== ''),
    thinking: decodeThinkingConfig(either(config, 'thinkingConfig'), 'generationConfig.thinkingConfig'),
    outputFormat: decodeOutputFormat(scan, dropped),
    ...choicesAsked('candidateCount', number('candidateCount')),
    ...logprobsAsked(either(config, 'responseLogprobs') === true, number('logprobs')),
    includeUsage: true,
    ...(shared.length > 0 && { shared: new Map(shared) }),
  }
}

/** Converts Gemini's name of a tier, which may have a prefix, to the name in other dialects. */
function tierOf(tier: string): string {
  const name = tier.toLowerCase().replace(/^service_tier_/, '')
  return name === 'standard' || name === 'unspecified' ? 'default' : name
}

/** Reads the texts of the system instruction; its role has no meaning. */
function decodeSystem(value: unknown, dropped: Dropped): TextPart[] {
  if (value === undefined) return []
  const given = either(fieldsAt(value, 'systemInstruction'), 'parts') ?? []
  const parts = Array.isArray(given) ? (given as readonly unknown[]) : [given]
  return parts.flatMap((part, index) => {
    const path = `systemInstruction.parts[${index}]`
    const fields: Fields = fieldsAt(part, path)
    const text = either(fields, 'text')
    if (text === undefined) drop(dropped, 'systemInstruction')
    return text === undefined || text === '' ? [] : [{ kind: 'text', text: textAt(text, `${path}.text`) }]
  })
}
