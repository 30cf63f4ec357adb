import type { UpstreamModel } from '@sluice/wire/codec'
import type { Conversation } from '@sluice/wire/conversation'
import { capabilitiesOf } from '@sluice/wire/model-capabilities'
import { serverRulesOf } from '@sluice/wire/server-rules'

/**
 * The upstream model of that name with its capabilities, at a server that takes texts as lists; an unknown name has
 * all capabilities.
 */
export function upstreamOf(name: string): UpstreamModel {
  const server = { ...serverRulesOf({ base_url: '' }, name), takesTextParts: true }
  return { name, capabilities: capabilitiesOf(name, name), server }
}

/** A conversation with default values except the given ones. */
export function conversationOf(fields: Partial<Conversation>): Conversation {
  return {
    model: 'm',
    stream: false,
    system: [],
    turns: [],
    tools: [],
    toolChoice: undefined,
    parallelTools: undefined,
    maxTokens: undefined,
    temperature: undefined,
    topP: undefined,
    topK: undefined,
    seed: undefined,
    presencePenalty: undefined,
    frequencyPenalty: undefined,
    stop: [],
    thinking: undefined,
    outputFormat: undefined,
    webSearch: undefined,
    includeUsage: false,
    ...fields,
  }
}
