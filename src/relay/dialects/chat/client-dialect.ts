import {
  ChatTap,
  gateChatRequest,
  promptText,
  readChatRequest,
  usageOfReply,
} from '../../../protocols/chat/index.ts'
import type { Conversions } from '../conversions.ts'
import type { Dialect } from '../dialect.ts'
import { requestsFor } from '../requests-for.ts'
import { convertedChat } from './converted-chat.ts'

/** Chat completions: bytes to channels that speak them, converted to others. */
export function chatDialect(conversions: Conversions): Dialect {
  return {
    name: 'chat',
    endpoint: 'chat',
    promptText,
    read(scan, _headers, reader) {
      const request = readChatRequest(scan)
      return {
        ...request,
        forChannels: (channels, model) =>
          requestsFor(
            'chat',
            request.model,
            channels,
            model,
            (channel) => ({
              channel,
              outputMaximum: request.maxTokens,
              choices: request.n,
              prepare(passThrough) {
                const gated = gateChatRequest(scan, request, channel, passThrough)
                const { body, upstreamModel, askedForUsage } = gated
                return {
                  protocol: 'chat',
                  path: convertedChat.path(upstreamModel, request.stream),
                  headers: [],
                  body,
                  upstreamModel,
                  dropped: [],
                  tap: () => new ChatTap({ swallowUsage: askedForUsage, addUsage: request.includeUsage }),
                  reply: (bytes) => ({ facts: usageOfReply(bytes), body: () => bytes }),
                }
              },
            }),
            (spoken) =>
              conversions.decode(convertedChat, scan, { maxTokens: request.maxTokens, reader, spoken }),
          ),
      }
    },
  }
}
