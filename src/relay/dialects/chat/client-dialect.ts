import {
  ChatTap,
  chatErrorFrame,
  gateChatRequest,
  promptText,
  readChatRequest,
  usageOfReply,
} from '../../../protocols/chat/index.ts'
import type { Conversions } from '../conversions.ts'
import type { Dialect } from '../dialect.ts'

/** Chat completions: bytes to channels that speak them, converted to others. */
export function chatDialect(conversions: Conversions): Dialect {
  return {
    name: 'chat',
    promptText,
    errorFrame: chatErrorFrame,
    read(scan) {
      const request = readChatRequest(scan)
      const conversion = conversions.of('chat', scan, request)
      return {
        ...request,
        outputMaximum: (channel, model) =>
          channel.protocol === 'chat' ? request.maxTokens : conversion.outputMaximum(channel, model),
        answers: (channel) => (channel.protocol === 'chat' ? request.n : 1),
        prepare(channel, model, passThrough, asker) {
          if (channel.protocol !== 'chat') return conversion.prepare(channel, model, asker)
          const { body, upstreamModel, askedForUsage } = gateChatRequest(scan, request, channel, passThrough)
          return {
            path: '/chat/completions',
            headers: [],
            body,
            upstreamModel,
            dropped: [],
            tap: () => new ChatTap({ swallowUsage: askedForUsage, addUsage: request.includeUsage }),
            reply: (bytes) => ({ facts: usageOfReply(bytes), body: () => bytes }),
          }
        },
      }
    },
  }
}
