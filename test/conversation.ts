import type { UpstreamModel } from '../src/protocols/codec.ts'
import type { Conversation } from '../src/protocols/conversation.ts'
import { capabilitiesOf } from '../src/protocols/model-capabilities.ts'

/** A model that takes what its name tells; everything, for a name that nobody knows. */
export function upstreamOf(name: string): UpstreamModel {
  return { name, capabilities: capabilitiesOf(name, name) }
}

/** A conversation that asks for nothing but what is given. */
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
    stop: [],
    thinking: undefined,
    outputFormat: undefined,
    webSearch: undefined,
    includeUsage: false,
    ...fields,
  }
}
