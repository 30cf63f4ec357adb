import type { Conversation } from '../src/protocols/conversation.ts'

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
