import type { ProtocolName } from '../../domain/channel.ts'
import { convertedChat } from './chat/converted-chat.ts'
import type { ConvertedDialect } from './converted-dialect.ts'
import { convertedGemini } from './gemini/converted-gemini.ts'
import { convertedMessages } from './messages/converted-messages.ts'
import { convertedResponses } from './responses/converted-responses.ts'

/** Dialects that calls are converted between; a list of documents is no conversation. */
const CONVERTED_DIALECTS: Readonly<Record<ProtocolName, ConvertedDialect | undefined>> = {
  chat: convertedChat,
  messages: convertedMessages,
  responses: convertedResponses,
  gemini: convertedGemini,
  rerank: undefined,
}

/** The dialect of that name, for conversions. Routing sees to it that there is one. */
export function convertedDialect(name: ProtocolName): ConvertedDialect {
  const dialect = CONVERTED_DIALECTS[name]
  if (!dialect) throw new Error(`no call is converted to or from ${name}`)
  return dialect
}
