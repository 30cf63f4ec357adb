import type { ProtocolName } from '../../domain/protocols.ts'
import { convertedChat } from './chat/converted-chat.ts'
import type { UpstreamDialect } from './converted-dialect.ts'
import { convertedConverse } from './converse/converted-converse.ts'
import { convertedGemini } from './gemini/converted-gemini.ts'
import { convertedMessages } from './messages/converted-messages.ts'
import { convertedResponses } from './responses/converted-responses.ts'

/** Dialects that calls are converted between; a list of documents is no conversation. */
const CONVERTED_DIALECTS: Readonly<Record<ProtocolName, UpstreamDialect | undefined>> = {
  chat: convertedChat,
  messages: convertedMessages,
  responses: convertedResponses,
  gemini: convertedGemini,
  converse: convertedConverse,
  rerank: undefined,
}

/** The dialect of that name, for conversions. Routing sees to it that there is one. */
export function convertedDialect(name: ProtocolName): UpstreamDialect {
  const dialect = CONVERTED_DIALECTS[name]
  if (!dialect) throw new Error(`no call is converted to or from ${name}`)
  return dialect
}
