import {
  ChatTap,
  chatErrorFrame,
  gateChatRequest,
  promptText,
  readChatRequest,
  usageOfReply,
} from '../../protocols/chat/index.ts'
import type { Dialect } from './road.ts'

/** Chat completions: bytes to channels that speak them. */
export const chatDialect: Dialect = {
  name: 'chat',
  promptText,
  brokenOff: chatErrorFrame,
  read(scan) {
    const request = readChatRequest(scan)
    return {
      ...request,
      outputMaximum: () => request.maxTokens,
      prepare(channel, passThrough) {
        const { body, upstreamModel, askedForUsage } = gateChatRequest(scan, request, channel, passThrough)
        return {
          path: '/chat/completions',
          headers: [],
          body,
          upstreamModel,
          dropped: [],
          tap: () => new ChatTap({ swallowUsage: askedForUsage }),
          reply: (bytes) => ({ facts: usageOfReply(bytes), body: bytes }),
        }
      },
    }
  },
}
