import {
  gateMessagesRequest,
  MessagesTap,
  messagesErrorFrame,
  promptText,
  readMessagesRequest,
  usageOfMessage,
} from '../../../protocols/messages/index.ts'
import type { Conversions } from '../conversions.ts'
import type { Dialect } from '../dialect.ts'
import { versionHeaders } from './version-headers.ts'

/** Messages: bytes to channels that speak them, converted to others. */
export function messagesDialect(conversions: Conversions): Dialect {
  return {
    name: 'messages',
    promptText,
    errorFrame: messagesErrorFrame,
    read(scan, headers) {
      const request = readMessagesRequest(scan)
      const upstreamHeaders = versionHeaders(headers)
      const conversion = conversions.of('messages', scan, request)
      return {
        ...request,
        outputMaximum: () => request.maxTokens,
        answers: () => 1,
        prepare(channel, model, passThrough, asker) {
          if (channel.protocol !== 'messages') return conversion.prepare(channel, model, asker)
          const { body, upstreamModel } = gateMessagesRequest(scan, request, channel, passThrough)
          return {
            path: '/messages',
            headers: upstreamHeaders,
            body,
            upstreamModel,
            dropped: [],
            tap: () => new MessagesTap(),
            reply: (bytes) => ({ facts: usageOfMessage(bytes), body: () => bytes }),
          }
        },
      }
    },
  }
}
